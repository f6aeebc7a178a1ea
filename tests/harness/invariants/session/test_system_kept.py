"""The system text of a session, in request after request."""

from collections.abc import Sequence

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder

BASH = ("bash",)


def _judged(*sizes: int | None, tools: Sequence[Sequence[str]] = (), attempts: int = 1) -> Verdict:
    """One turn for each size of a system text, in characters."""
    tell = HistoryBuilder()
    for number, size in enumerate(sizes):
        tell.message()
        offered = tools[number] if tools else BASH
        for _ in range(attempts - 1):
            tell.refuse(tell.ask(1, tools=offered, system=size), 503)
        tell.reply(tell.ask(1, tools=offered, system=size))
        tell.end()
    return check("system_kept", tell.seal())


def test_a_system_text_that_goes_away_is_red():
    """The oldest messages are dropped, and it was one of them."""
    verdict = _judged(80, 80, 0, 0)
    assert verdict.status == "fail"
    says = "the system text is gone: request 2 has one of 80 characters, and from request 3 on there is none"
    assert verdict.says == says


@pytest.mark.parametrize("sizes", [(80, 80, 80), (80, 40, 900), (80, 80, 0, 80), (80, 80, 0)])
def test_one_that_changes_or_is_away_once_is_none(sizes: Sequence[int]):
    """A single request without one may be another question."""
    assert _judged(*sizes).status == "pass"


@pytest.mark.parametrize("sizes", [(0, 0, 0), (80, 0, 0), (None, None, None), (0, 80, 0, 0)])
def test_an_agent_without_one_and_an_older_history_are_not_judged(sizes: Sequence[int | None]):
    """Nor is one whose first request alone has it."""
    assert _judged(*sizes).status == "nothing"


def test_another_agent_of_a_handoff_has_its_own():
    """It is known by its tools."""
    assert _judged(80, 80, 0, 0, tools=[BASH, BASH, ("find",), ("find",)]).status == "pass"


def test_tries_of_one_step_are_one():
    """The same request, sent again."""
    assert _judged(80, 0, 0, attempts=2).status == "nothing"
    assert _judged(80, 80, 0, attempts=2).status == "pass"
