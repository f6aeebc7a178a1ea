"""A whole tool call runs, after a broken try and beside others."""

from typing import Any

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.turn import PermissionAsked
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def _judged(
    *, runs: bool = False, sent: bool = True, printed: bool = False, other_ran: bool = True, denied: bool = False
) -> Verdict:
    """A call breaks off, comes whole in the next try, and then its result is sent."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    carried = [tell.runs(token) if other_ran else result(token)]
    tell.cut(tell.ask(2, results=carried), tools=[False])
    (again,) = tell.reply(tell.ask(2, results=carried), tools=[True])
    if denied:
        tell.add(PermissionAsked(turn=1, offered=("reject_once",), chosen="reject_once", tokens=(again,)))
    if runs:
        carried += [tell.runs(again)]
    elif sent:
        carried += [result(again, is_error=not printed, printed=printed)]
    tell.reply(tell.ask(3, results=carried), f"Done {tell.nonce}")
    return check("whole_call_runs", tell.end().seal())


def test_a_whole_call_that_does_not_run_after_a_broken_one_is_red():
    """The agent put its arguments behind the half ones."""
    verdict = _judged()
    assert verdict.status == "fail"
    assert verdict.says == (
        "tool call 1.2.1 (shell) came whole after a broken try, and did not run; request 4 carries a result for it"
    )


@pytest.mark.parametrize(("ran", "status"), [(False, "fail"), (True, "pass")])
def test_a_call_in_another_form_of_the_stream_runs(ran: bool, status: str):
    """The agent read an empty field of it as another call."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], damaged=True, says_all=True)
    told = tell.runs(token) if ran else result(token, is_error=True, printed=False)
    (other,) = tell.reply(tell.ask(2, results=[told]), tools=[True])
    tell.reply(tell.ask(3, results=[told, tell.runs(other)]), f"Done {tell.nonce}")
    verdict = check("whole_call_runs", tell.end().seal())
    assert verdict.status == status
    assert ran or verdict.says.startswith("tool call 1.1.1 (shell) came whole in another form, and did not run")


def test_a_whole_call_that_runs_passes():
    """The broken try was discarded."""
    assert _judged(runs=True).status == "pass"


@pytest.mark.parametrize(
    "more",
    [{"sent": False}, {"printed": True}, {"other_ran": False}, {"denied": True}],
    ids=["no result is sent", "its own output is sent", "no command was ever seen to run", "its user denied it"],
)
def test_what_may_have_another_reason_is_not_judged(more: dict[str, bool]):
    """The agent may have given up, or the command ran where it is not seen."""
    assert _judged(**more).status == "nothing"


def test_a_second_message_may_keep_a_call_from_running():
    """The agent turns to it, and says so in the result."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    carried = [tell.runs(token)]
    tell.cut(tell.ask(2, results=carried), tools=[False])
    (again,) = tell.reply(tell.ask(2, results=carried), tools=[True])
    tell.message()
    tell.goes_on(1)
    skipped = result(again, is_error=True, printed=False)
    tell.reply(tell.ask(3, results=[*carried, skipped]), f"Done {tell.nonce}")
    tell.end().goes_on(2)
    assert check("whole_call_runs", tell.end().seal()).status == "nothing"


def test_an_agent_that_runs_one_call_of_a_reply_may_leave_out_another_one_that_broke_off():
    """It runs the first, and says of the second that it did not run."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), tools=[True, False])
    first, second = tell.reply(tell.ask(1), tools=[True, True])
    left_out = result(second, is_error=True, printed=False)
    tell.reply(tell.ask(2, results=[tell.runs(first), left_out]), f"Done {tell.nonce}")
    assert check("whole_call_runs", tell.end().seal()).status == "nothing"


def test_a_call_that_never_broke_off_is_not_judged():
    """An agent may refuse to run a call, and say why."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    (other,) = tell.reply(tell.ask(2, results=[tell.runs(token)]), tools=[True])
    refused = result(other, is_error=True, printed=False)
    tell.reply(tell.ask(3, results=[result(token), refused]), f"Done {tell.nonce}")
    assert check("whole_call_runs", tell.end().seal()).status == "nothing"


def _together(*, ran: int = 0, carried: int = 1, known: bool = True, denied: bool = False, fault: str = "") -> Verdict:
    """A reply has three calls, of which `ran` run and `carried` have a result; then another call runs."""
    tell = HistoryBuilder()
    tell.message()
    asked = tell.ask(1)
    if fault:
        tell.fires(fault, asked)
    tokens = tell.reply(asked, tools=[True] * 3)
    if denied:
        tell.add(PermissionAsked(turn=1, offered=("reject_once",), chosen="reject_once", tokens=(tokens[0],)))
    results = [tell.runs(token) for token in tokens[:ran]]
    results += [result(token, is_error=True, printed=False) for token in tokens[ran:carried]]
    (again,) = tell.reply(tell.ask(2, results=results), tools=[True])
    results += [tell.runs(again) if known else result(again, is_error=True, printed=False)]
    tell.reply(tell.ask(3, results=results), f"Done {tell.nonce}")
    return check("whole_call_runs", tell.end().seal())


def test_calls_of_one_reply_that_are_melted_into_one_are_red():
    """Nothing runs, the first has an error as its result, and the others are gone."""
    verdict = _together()
    assert verdict.status == "fail"
    assert verdict.says == (
        "call 1 has 3 tool calls that came whole, and none of them ran; no later request of the turn has 1.1.2, 1.1.3"
    )


@pytest.mark.parametrize(
    "more",
    [{"ran": 1}, {"carried": 3}, {"known": False}, {"denied": True}, {"carried": 0}, {"fault": "duplicate_ids"}],
    ids=["one ran", "each has a result", "the tool never ran", "a denied call", "no result", "a fault"],
)
def test_an_agent_that_runs_one_call_or_says_that_it_ran_none_is_not_red(more: dict[str, Any]):
    """It may run one at a time, or refuse several at once, if the model reads so."""
    assert _together(**more).status != "fail"
