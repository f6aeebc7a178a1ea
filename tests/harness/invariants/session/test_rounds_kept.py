"""What tools did stays in the conversation, in agents of several designs."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder


def _two_turns(
    keeps: bool, *, summary: bool = False, sees: tuple[int, ...] | None = None, fails: bool = False
) -> Verdict:
    """A tool round, and the next turn's first request, with or without its result."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), "I look.", tools=[True])
    result = tell.runs(token)
    tell.reply(tell.ask(2, results=[result]), f"Done {tell.nonce}")
    _ = tell.fails() if fails else tell.end()
    tell.message()
    if summary:
        tell.reply(tell.ask(1, background="summary"), "They looked.")
    tell.reply(tell.ask(1, results=[result] if keeps else [], sees=sees), f"Yes {tell.nonce}")
    return check("rounds_kept", tell.end().seal())


def test_a_round_that_the_next_turn_does_not_carry_is_red():
    """Only what was said is sent, and the model does the work again."""
    verdict = _two_turns(keeps=False)
    assert verdict.status == "fail"
    assert verdict.says == "request 3 carries the message of turn 1, and no result of its tool calls (1.1.1)"


def test_a_round_that_the_next_turn_carries_passes():
    """Call and result stand there."""
    assert _two_turns(keeps=True).status == "pass"


@pytest.mark.parametrize(
    "more",
    [{"summary": True}, {"sees": (2,)}, {"fails": True}],
    ids=["a summary between", "an agent without a history, or a provider that keeps it", "a turn that failed"],
)
def test_what_other_designs_do_is_not_judged(more: dict[str, object]):
    """The result may be elsewhere, or another invariant judges it."""
    assert _two_turns(keeps=False, **more).status == "nothing"  # type: ignore[arg-type]
