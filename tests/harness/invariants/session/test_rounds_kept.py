"""What tools did stays in the conversation, in agents of several designs."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder


def _two_turns(keeps: bool, *, summary: bool = False, sees: tuple[int, ...] | None = None) -> Verdict:
    """A tool round, and the next turn's first request, with or without its result."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), "I look.", tools=[True])
    result = tell.runs(token)
    tell.reply(tell.ask(2, results=[result]), f"Done {tell.nonce}")
    tell.end()
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


@pytest.mark.parametrize(("keeps", "status"), [(True, "pass"), (False, "fail")])
def test_what_the_tools_of_a_turn_did_that_failed_behind_them_must_stay_with_its_message(keeps: bool, status: str):
    """The provider is overloaded; the message alone would have the model do the work again."""
    assert _behind_a_failure(keeps).status == status


def test_a_turn_that_failed_and_was_taken_back_is_not_judged_here():
    """`history_kept` judges that."""
    assert _behind_a_failure(False, sees=(2,)).status == "nothing"


def test_what_the_provider_refused_may_be_left_out():
    """The result may be what it does not take."""
    assert _behind_a_failure(False, code=400).status == "nothing"


def _behind_a_failure(keeps: bool, *, sees: tuple[int, ...] | None = None, code: int = 529) -> Verdict:
    """A tool round, a request with its result that is refused, and the next turn's first request."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), "I look.", tools=[True])
    result = tell.runs(token)
    tell.refuse(tell.ask(2, results=[result]), code)
    tell.fails()
    tell.message()
    tell.reply(tell.ask(1, results=[result] if keeps else [], sees=sees), f"Yes {tell.nonce}")
    return check("rounds_kept", tell.end().seal())


@pytest.mark.parametrize(
    "more",
    [{"summary": True}, {"sees": (2,)}],
    ids=["a summary between", "an agent without a history, or a provider that keeps it"],
)
def test_what_other_designs_do_is_not_judged(more: dict[str, object]):
    """The result may be elsewhere, or another invariant judges it."""
    assert _two_turns(keeps=False, **more).status == "nothing"  # type: ignore[arg-type]
