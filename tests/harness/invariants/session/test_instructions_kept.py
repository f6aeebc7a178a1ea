"""What an agent was told stays in its requests."""

from collections.abc import Sequence

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder


def _with_rules(*seen: bool | None, steps: int = 2) -> Verdict:
    """Turns whose requests have the rules, or not."""
    tell = HistoryBuilder()
    for rules in seen:
        tell.message()
        for step in range(1, steps + 1):
            tell.reply(tell.ask(step, rules=rules), f"Done {tell.nonce}")
        tell.end()
    return check("instructions_kept", tell.seal())


def test_rules_that_go_with_old_messages_are_gone():
    """Two steps without them are enough, also where a later one has them again."""
    found = _with_rules(True, True, False, True)
    assert found.status == "fail"
    assert found.says == "request 4 has the project's rules, and from request 5 on 2 steps in a row do not"


@pytest.mark.parametrize("seen", [(True, True), (False, True), (True, False, True)])
def test_rules_may_come_late_and_be_missing_in_a_single_step(seen: Sequence[bool]):
    """Such a request may be another question."""
    assert _with_rules(*seen, steps=1).status == "pass"


@pytest.mark.parametrize("seen", [(False, False), (None, None)])
def test_an_agent_that_reads_no_rules_is_not_judged(seen: Sequence[bool | None]):
    """Nor is one in a project that has none."""
    assert _with_rules(*seen).status == "nothing"


def _with_system(before: float | None, after: float | None, *, summed_up: bool = True, model: str = "") -> Verdict:
    """Two steps before a summary and two behind it, with shares of the first system text."""
    tell = HistoryBuilder()
    for shared in (before, after):
        if shared is after and summed_up:
            tell.reply(tell.ask(1, background="summary"), "It was said.")
        tell.message()
        for step in (1, 2):
            tell.reply(tell.ask(step, shared=shared, model=model if shared is after else ""), f"Done {tell.nonce}")
        tell.end()
    return check("instructions_kept", tell.seal())


def test_another_system_text_behind_a_summary_is_that_of_another_agent():
    """Hardly anything of the first one is left."""
    found = _with_system(1.0, 0.1)
    assert found.status == "fail" and "the first system text" in found.says


@pytest.mark.parametrize("after", [0.3, 1.0])
def test_a_system_text_may_change(after: float):
    """Agents put what they know of the project into it, or the time."""
    assert _with_system(0.99, after).status == "pass"


def test_without_a_summary_or_for_another_model_a_system_text_may_be_another_one():
    """An agent has modes, and words for each model."""
    assert _with_system(1.0, 0.0, summed_up=False).status == "nothing"
    assert _with_system(1.0, 0.0, model="another").status == "nothing"
    assert _with_system(1.0, None).status == "nothing"
