"""No tool call of a reply is lost beside the others, in agents of several designs."""

from dataclasses import replace
from typing import Any

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import OpenToolCall, RequestArrived
from wedgehog.harness.record.events.turn import PermissionAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def _told(*, ran: int = 1, answered: bool = True, summary: bool = False, **reply: Any) -> History:
    """A reply with three calls; the next request has the results of the first `ran` of them."""
    tell = HistoryBuilder()
    tell.message()
    tokens = tell.reply(tell.ask(1), tools=[True] * 3, **reply)
    results = [tell.runs(token) for token in tokens[:ran]]
    if summary:
        tell.reply(tell.ask(1, background="summary"), "They looked.")
    tell.reply(tell.ask(2, results=results), f"Done {tell.nonce}")
    return (tell.end() if answered else tell.fails()).seal()


def _judged(**more: Any) -> Verdict:
    return check("calls_kept", _told(**more))


def test_calls_of_a_reply_that_are_lost_beside_the_others_are_red():
    """The model reads one result, and its other two calls have left no trace."""
    verdict = _judged(ran=1)
    assert verdict.status == "fail"
    assert verdict.says == "call 1 has 3 tool calls, and no later request of the turn has 1.1.2, 1.1.3"


def test_a_result_for_each_call_passes():
    """All of them ran."""
    assert _judged(ran=3).status == "pass"


def test_a_call_that_did_not_run_and_says_so_passes():
    """An agent that runs one call at a time may say so to the model."""
    tell = HistoryBuilder()
    tell.message()
    first, *others = tell.reply(tell.ask(1), tools=[True] * 3)
    skipped = [result(token, is_error=True, printed=False) for token in others]
    tell.reply(tell.ask(2, results=[tell.runs(first), *skipped]), f"Done {tell.nonce}")
    assert check("calls_kept", tell.end().seal()).status == "pass"


def test_a_call_that_its_user_denied_may_be_left_out():
    """The model need not read of it."""
    tell = HistoryBuilder()
    tell.message()
    first, other = tell.reply(tell.ask(1), tools=[True] * 2)
    tell.add(PermissionAsked(turn=1, offered=("reject_once",), chosen="reject_once", tokens=(other,)))
    tell.reply(tell.ask(2, results=[tell.runs(first)]), f"Done {tell.nonce}")
    assert check("calls_kept", tell.end().seal()).status == "pass"


def test_calls_of_a_reply_that_a_fault_changed_are_not_judged():
    """Two calls with one id are one for an agent that finds them by it."""
    tell = HistoryBuilder()
    tell.message()
    asked = tell.ask(1)
    tell.fires("duplicate_ids", asked)
    first, _ = tell.reply(asked, tools=[True] * 2)
    tell.reply(tell.ask(2, results=[tell.runs(first)]), f"Done {tell.nonce}")
    assert check("calls_kept", tell.end().seal()).status == "nothing"


@pytest.mark.parametrize(
    ("fault", "runs", "status"),
    [("other_form", True, "fail"), ("misnumbered", True, "fail"), ("misnumbered", False, "nothing")],
)
def test_a_call_that_is_lost_in_another_form_of_the_stream_is_red(fault: str, runs: bool, status: str):
    """Of one index for two calls SDKs make one call, which fails: the model reads that."""
    tell = HistoryBuilder()
    tell.message()
    asked = tell.ask(1)
    tell.fires(fault, asked)
    first, _ = tell.reply(asked, tools=[True] * 2, damaged=True)
    told = tell.runs(first) if runs else result(first, is_error=True, printed=False)
    tell.reply(tell.ask(2, results=[told]), f"Done {tell.nonce}")
    assert check("calls_kept", tell.end().seal()).status == status


def test_after_a_refusal_for_its_length_an_agent_may_drop_calls():
    """It must make its conversation shorter."""
    tell = HistoryBuilder()
    tell.message()
    first, other = tell.reply(tell.ask(1), tools=[True] * 2)
    results = [tell.runs(token) for token in (first, other)]
    tell.refuse(tell.ask(2, results=results), 400, message="prompt is too long: 9 tokens > 8 maximum")
    tell.reply(tell.ask(2, results=results[:1]), f"Done {tell.nonce}")
    assert check("calls_kept", tell.end().seal()).status == "nothing"


def test_results_that_come_one_by_one_pass():
    """Of the last request all results are known."""
    tell = HistoryBuilder()
    tell.message()
    tokens = tell.reply(tell.ask(1), tools=[True] * 2)
    for token in tokens:
        tell.reply(tell.ask(2, results=[tell.runs(token)]), f"Done {tell.nonce}")
    assert check("calls_kept", tell.end().seal()).status == "pass"


@pytest.mark.parametrize(
    "more",
    [{"ran": 0}, {"answered": False}, {"summary": True}, {"damaged": True}, {"how": "cut"}],
    ids=["no result is sent", "an error ends the turn", "a summary between", "a damaged reply", "a broken reply"],
)
def test_what_may_have_another_reason_is_not_judged(more: dict[str, Any]):
    """The calls may be elsewhere, or the reply was not what the script says."""
    assert _judged(**more).status == "nothing"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"open_calls": (OpenToolCall("a", "1.1.2"), OpenToolCall("b", "1.1.3"))}, "pass"),
        ({"in_text": True}, "nothing"),
    ],
    ids=["a call that is still open", "results as text"],
)
def test_calls_that_are_known_in_another_way_are_not_lost(change: dict[str, Any], status: str):
    """A provider may accept an open call; a result that travels as text tells of its own call only."""
    history = _told(ran=1)
    for event in history.of(RequestArrived):
        if event.results and "in_text" in change:
            object.__setattr__(event, "results", tuple(replace(it, in_text=True) for it in event.results))
        elif event.results:
            object.__setattr__(event, "open_calls", change["open_calls"])
    assert check("calls_kept", history).status == status
