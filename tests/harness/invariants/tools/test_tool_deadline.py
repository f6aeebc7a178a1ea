"""A tool call is over in time."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def _carried_after(seconds: float, *, refused_first: bool = False) -> History:
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    if refused_first:
        tell.connection_refused()
    tell.wait(seconds)
    tell.answer_step(2, [result(token)])
    return tell.end().seal()


@pytest.mark.parametrize(("seconds", "status"), [(30.9, "pass"), (31.1, "fail")])
def test_a_call_counts_from_its_reply_to_the_request_with_its_result(seconds: float, status: str):
    """Stretched by one second."""
    assert check("tool_deadline", _carried_after(seconds), tool_s=30).status == status


def test_without_a_bound_the_slowest_is_reported():
    """There is no stock number."""
    verdict = check("tool_deadline", _carried_after(40))
    by_requests = "took 40.0 s from its reply to the request with its result"
    assert (verdict.status, verdict.says) == ("pass", f"the slowest tool call {by_requests}")


def test_the_tools_own_word_that_it_is_done_counts_first():
    """What the agent does afterwards is not the tool's time."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    carried = tell.runs(token, for_s=5)
    tell.wait(60)
    tell.answer_step(2, [carried])
    assert check("tool_deadline", tell.end().seal(), tool_s=30).status == "pass"


def test_a_fault_that_kept_the_next_request_away_makes_it_inconclusive():
    """The tool may have been done long before."""
    assert check("tool_deadline", _carried_after(40, refused_first=True), tool_s=30).status == "inconclusive"


def test_a_tool_that_never_ends_is_measured_to_the_end_of_its_turn():
    """Here: to its deadline."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    tell.wait(100).deadline(100)
    tell.end("", ended="deadline", exit_code=-9)
    assert check("tool_deadline", tell.seal(), tool_s=30).status == "fail"


def test_calls_of_a_reply_that_was_cut_and_asked_again_count_from_the_second_reply():
    """The same call is offered twice; the agent acts on the last offer."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), tools=[True])
    tell.wait(40)
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.answer_step(2, [tell.runs(token, for_s=5)])
    assert check("tool_deadline", tell.end().seal(), tool_s=30).status == "pass"


def test_a_call_that_was_cut_and_never_carried_out_is_not_measured():
    """No beacon, no result, no whole reply."""
    tell = HistoryBuilder()
    tell.message()
    tell.cut(tell.ask(1), tools=[True])
    tell.wait(100)
    assert check("tool_deadline", tell.fails().seal(), tool_s=30).status == "nothing"


def test_a_call_that_the_agent_dropped_for_another_request_is_not_measured():
    """It stopped at its limit and asked for a summary."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.wait(1)
    tell.reply(tell.ask(1, body="summary"), f"Done {tell.nonce}", took_s=60)
    assert check("tool_deadline", tell.end().seal(), tool_s=30).status == "nothing"


def test_our_own_lag_forbids_a_verdict():
    """It would fail, and the clock cannot be trusted."""
    tell = HistoryBuilder().lag(6)
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.answer_step(2, [tell.runs(token, for_s=60)])
    assert check("tool_deadline", tell.end().seal(), tool_s=30).status == "inconclusive"


def test_a_kill_ends_the_tools_time():
    """The next request comes from another process, which had to start first."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    tell.wait(1).kill()
    tell.message()
    tell.wait(40)
    tell.answer_step(1, [result(token, is_error=True)])
    verdict = check("tool_deadline", tell.end().seal(), tool_s=30)
    assert (verdict.status, verdict.says) == ("pass", "the slowest tool call was still open 1.0 s after its reply")


def test_the_pause_of_the_user_after_an_abort_is_not_the_tools_time():
    """Its result, that it was stopped, comes with the next message."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    tell.fires("abort", None)
    tell.wait(2).abort().end("", ended="aborted")
    tell.wait(60).message()
    tell.reply(tell.ask(1, results=[result(token)]))
    verdict = check("tool_deadline", tell.end().seal(), tool_s=30)
    assert verdict.status == "pass"


@pytest.mark.parametrize(("asks", "status"), [(True, "nothing"), (False, "fail")])
def test_a_subagent_that_asks_the_model_is_no_tool_that_takes_too_long(asks: bool, status: str):
    """Its own turns have the time of the turn; a tool of that name that asks nothing is measured."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True], name="task")
    if asks:
        tell.reply(tell.ask(1, side="subagent 1"), "It is empty.")
    tell.wait(40)
    tell.answer_step(2, [result(token)])
    assert check("tool_deadline", tell.end().seal(), tool_s=30).status == status
