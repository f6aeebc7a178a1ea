"""A pass has a reason: what shows that the invariant holds."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.invariants.registry import known
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder


def _refused_twice() -> History:
    """An agent that tries twice more after a 503, and then answers."""
    tell = HistoryBuilder()
    tell.message()
    for wait_s in (0.5, 2.0):
        tell.refuse(tell.ask(1), 503)
        tell.wait(wait_s)
    tell.answer_step(1)
    return tell.end().seal()


@pytest.mark.parametrize(
    ("name", "because"),
    [
        ("paid_call_bound", "turn 1: the most paid calls of one step: 1, 13 allowed"),
        ("retry_discipline", "turn 1: 2 of 3 requests failed; the shortest wait before a retry was 0.51 s"),
        ("turn_answered", "turn 1 was answered"),
    ],
)
def test_the_reason_has_the_numbers_of_the_run(name: str, because: str):
    """Not only the rule."""
    verdict = check(name, _refused_twice())
    assert (verdict.status, verdict.because) == ("pass", because)


def test_a_failed_turn_passes_because_its_user_reads_the_error():
    """The sentence quotes what the user read."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 503)
    verdict = check("error_surfaced", tell.end("", exit_code=1, stderr="it broke").seal())
    assert verdict.because == "turn 1 ended in an error that its user sees: exit code 1: it broke"


def test_each_stock_invariant_that_passes_has_a_reason():
    """Its own remark, or what was judged."""
    verdicts = [check(name, _refused_twice()) for name in known()]
    reasons = {it.name: it.says or it.because for it in verdicts if it.status == "pass"}
    assert len(reasons) > 3 and all(reasons.values()), reasons


def test_a_reason_of_many_parts_is_short():
    """Four of them, and the number of the others."""
    tell = HistoryBuilder()
    for _ in range(7):
        tell.message()
        tell.answer_step(1)
        tell.end()
    assert check("turn_answered", tell.seal()).because.endswith("turn 4 was answered; and 3 more")
