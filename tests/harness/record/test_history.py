"""The history of a run, and its views."""

import json
from pathlib import Path

import pytest

from wedgehog.harness.record.events.base import KINDS, Event, from_json
from wedgehog.harness.record.events.call import RequestArrived
from wedgehog.harness.record.events.fault import FaultHealed
from wedgehog.harness.record.events.run import LagSeen, Note, Trouble
from wedgehog.harness.record.events.turn import HangSeen
from wedgehog.harness.record.history import History, add_trouble, read
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result
from wedgehog.reports.calls import ending, took_s


class StoppedClock:
    """A clock that always says seven seconds."""

    def now(self) -> float:
        return 7.0


def test_an_event_gets_its_place_and_time_and_reaches_the_sink_at_once():
    """A kill loses at most the event being written."""
    kept: list[Event] = []
    history = History(StoppedClock(), sink=kept.append)  # type: ignore[arg-type]
    history.add(Note(what="a"))
    second = history.add(Note(what="b", at_s=3.0))
    assert [(event.id, event.at_s) for event in kept] == [(0, 7.0), (1, 3.0)]
    assert second == kept[1]


def test_a_sealed_history_takes_nothing_more():
    """Verdicts depend on it."""
    history = History().seal()
    with pytest.raises(RuntimeError, match="sealed"):
        history.add(Note(what="late"))


def test_a_torn_last_line_is_left_out_and_any_other_is_named(tmp_path: Path):
    """A kill can leave such a line."""
    path = tmp_path / "history.jsonl"
    line = json.dumps(Note(what="a", id=0, at_s=1.0).as_json())
    path.write_text(f'{line}\n{line}\n{{"event": "no', encoding="utf-8")
    assert len(read(path).events) == 2
    path.write_text(f'{line}\n{{"event": "no\n{line}\n', encoding="utf-8")
    with pytest.raises(ValueError, match=r"history\.jsonl:2: "):
        read(path)


def test_an_error_takes_the_place_of_a_torn_last_line(tmp_path: Path):
    """The process that wrote the history has ended."""
    path = tmp_path / "history.jsonl"
    path.write_text(f'{json.dumps(Note(what="a", id=0, at_s=1.5).as_json())}\n{{"event": "no', encoding="utf-8")
    add_trouble(path, "it ended")
    history = read(path)
    assert history.events[1:] == [Trouble(what="it ended", id=1, at_s=1.5)]
    assert history.whole and history.missing is None


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"event": "nonsense"}, "unknown event 'nonsense'"),
        ({"event": "lag_seen"}, "event lag_seen: the key 'worst_s' is missing"),
    ],
)
def test_what_is_no_event_is_named(data: dict[str, object], says: str):
    """The error is one line with the line number."""
    with pytest.raises(ValueError, match=says):
        from_json(data)


def test_events_are_tagged_by_their_name_in_snake_case():
    """The file holds the same event."""
    assert KINDS["request_arrived"] is RequestArrived


def _a_turn() -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 503)
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.answer_step(2, [tell.runs(token)])
    return tell


def test_calls_join_all_that_became_of_a_request():
    """Refused, paid, delivered, and the time of a failure."""
    tell = _a_turn()
    tell.cut(tell.ask(3))
    tell.stall(tell.ask(3))
    refused, asked, answered, cut, stalled = tell.end().seal().calls
    assert (refused.paid, refused.failed_at_s) == (False, refused.refused and refused.refused.at_s)
    assert (asked.paid, asked.ok, asked.failed_at_s) == (True, True, None)
    assert answered.progressed
    assert (cut.paid, cut.whole, cut.failed_at_s) == (True, False, cut.ended and cut.ended.at_s)
    assert (stalled.whole, stalled.failed_at_s) == (False, stalled.hung_up and stalled.hung_up.at_s)
    assert [fault.name for fault in cut.faults] == ["cut"]


def test_a_reply_stopped_at_max_tokens_is_whole_but_not_ok():
    """The reply is delivered to its end, but it is not ok."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), "Half", stop="max_tokens")
    (call,) = tell.end().seal().calls
    assert (call.whole, call.ok) == (True, False)


def test_steps_hold_the_attempts_at_one_continuation():
    """Without background calls."""
    tell = _a_turn()
    tell.reply(tell.ask(2, background="title"), "A title")
    (turn,) = tell.end().seal().turns
    assert [(str(step), len(step.calls), len(step.paid_calls)) for step in turn.steps] == [
        ("step 1 of turn 1", 2, 1),
        ("step 2 of turn 1", 1, 1),
    ]
    assert (len(turn.calls), len(turn.main_calls), len(turn.paid_calls)) == (4, 3, 2)


def test_tool_uses_join_the_offer_its_beacons_and_the_requests_that_carry_its_result():
    """By its token."""
    (use,) = _a_turn().end().seal().tool_uses
    assert (use.token, len(use.started), len(use.done)) == ("1.1.1", 1, 1)
    assert [request.call for request in use.results] == [3]


def test_calls_outside_any_turn_are_stray():
    """They belong to turn 0."""
    tell = _a_turn().end()
    tell.ask(1, turn=0)
    history = tell.seal()
    assert [turn.number for turn in history.turns] == [1]
    assert [call.number for call in history.stray.calls] == [4]


def test_a_turn_counts_from_its_first_request():
    """Otherwise time counts from the message plus the usual start-up."""
    tell = HistoryBuilder()
    tell.message()
    tell.wait(3)
    tell.answer_step(1)
    tell.end().message()
    first, second = tell.end("").seal().turns
    assert first.start_s == first.calls[0].at_s
    assert second.stimulus is not None
    assert second.start_s == second.stimulus.at_s + 0.5


def test_a_turn_whose_first_requests_were_kept_away_counts_from_its_message():
    """The user waits since the message."""
    tell = HistoryBuilder()
    tell.message()
    tell.connection_refused()
    tell.wait(30)
    tell.answer_step(1)
    (turn,) = tell.end().seal().turns
    assert turn.stimulus is not None
    assert turn.start_s == turn.stimulus.at_s + 0.5
    assert turn.duration_s == pytest.approx(30, abs=1)


def test_a_fault_after_the_first_request_moves_no_start():
    """The agent had already started."""
    tell = HistoryBuilder()
    tell.message()
    tell.wait(3)
    tell.refuse(tell.ask(1))
    tell.connection_refused()
    tell.answer_step(1)
    (turn,) = tell.end().seal().turns
    assert turn.start_s == turn.calls[0].at_s


def test_bounds_are_stretched_by_a_second_and_our_worst_lag_is_kept():
    """The grace is one second, whatever the lag is."""
    history = HistoryBuilder().lag(0.2).lag(0.7).lag(0.1).seal()
    assert (history.stretched(60), history.lag_s) == (61.0, 0.7)
    assert not history.too_slow_to_judge_time
    assert HistoryBuilder().lag(5.1).seal().too_slow_to_judge_time
    assert not History(events=[LagSeen(worst_s=5.0)]).seal().too_slow_to_judge_time


def test_a_history_without_a_frame_has_a_bare_one():
    """A damaged file can still be read."""
    assert History().seal().run.time_scale == 1.0


def test_results_of_one_request_are_carried_once_each():
    """A result in two requests is listed twice."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.refuse(tell.ask(2, results=[result(token)]))
    tell.answer_step(2, [result(token)])
    (use,) = tell.end().seal().tool_uses
    assert [request.call for request in use.results] == [2, 3]


# ---- who ended a call


def _deadline(*, hangs_up_s: float = 0.0) -> HistoryBuilder:
    """A turn exceeds its deadline while its call is open; events of that call follow."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.wait(120).deadline().add(HangSeen(turn=1, says="it waited", file="hang-1.json"))
    tell.end("", ended="deadline")
    tell.wait(hangs_up_s).reply(call, how="hung up", delivered=0, took_s=0)
    return tell.hangs_up(call)


def _recovers(tell: HistoryBuilder) -> HistoryBuilder:
    tell.message("recovery")
    tell.answer_step(1)
    return tell.end()


def test_a_call_that_closes_at_the_deadline_was_ended_by_us():
    """The harness stops the agent; a connection that closes much later was closed by the agent."""
    assert _recovers(_deadline()).seal().calls[0].stopped_by == "our stop at the deadline"
    assert _recovers(_deadline(hangs_up_s=5)).seal().calls[0].stopped_by == ""


def test_a_call_that_the_agent_gave_up_before_we_touched_it_is_its_own():
    """The agent is observed first; nothing is stopped meanwhile."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.wait(120).deadline()
    tell.reply(call, how="hung up", delivered=0)
    tell.hangs_up(call).add(HangSeen(turn=1, says="it waited", file="hang-1.json"))
    assert tell.end("", ended="deadline").seal().calls[0].stopped_by == ""


def test_a_call_that_closes_after_our_kill_was_ended_by_it():
    """A kill of a tool ends no call of the agent."""
    for whom, by in (("tree", "our SIGKILL"), ("leader", "our SIGKILL"), ("tool", "")):
        tell = HistoryBuilder()
        tell.message()
        call = tell.ask(1)
        tell.kill(whom).reply(call, how="hung up", delivered=0)
        assert _recovers(tell.hangs_up(call)).seal().calls[0].stopped_by == by


def test_a_call_that_closes_after_the_last_turn_was_ended_with_the_run():
    """The harness stops the agent at that time."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    _recovers(tell.give_up(after_s=9).end("", ended="gave up"))
    tell.reply(call, how="hung up", delivered=0)
    assert tell.hangs_up(call).seal().calls[0].stopped_by == "the end of the run"


def test_a_call_that_the_agent_left_is_its_own():
    """The harness had done nothing."""
    tell = HistoryBuilder()
    tell.message()
    tell.stall(tell.ask(1))
    assert tell.fails().seal().calls[0].stopped_by == ""


# ---- whether it went on


def test_a_run_that_ends_while_calls_are_made_is_cut_short():
    """The totals are lower bounds."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    _recovers(tell.give_up(after_s=9).end("", ended="gave up"))
    assert tell.seal().cut_short
    assert _deadline().seal().cut_short, "it was at work when its time was up"


def test_a_run_that_came_to_its_end_is_not_cut_short():
    """Neither is one that never asked, one that answered and did not exit, or one with an open recovery message."""
    assert not History(StoppedClock()).seal().cut_short  # type: ignore[arg-type]
    tell = HistoryBuilder()
    tell.message()
    tell.stall(tell.ask(1))
    assert not _recovers(tell.fails()).seal().cut_short
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.deadline().end(ended="deadline").message("recovery")
    tell.ask(1)
    assert not tell.end("", ended="deadline").seal().cut_short


@pytest.mark.parametrize("healed", [True, False])
def test_a_stalled_reply_that_stays_open_lasts_until_its_fault_is_removed(healed):
    """As that of a service without a timer: it was shown as a call of 0 s beside "open since 7 s"."""
    it = HistoryBuilder()
    it.message()
    call = it.ask()
    it.reply(call, how="stalled", delivered=10)
    it.fires("stall", call)
    it.wait(7.0).deadline().end(ended="deadline")
    if healed:
        it.add(FaultHealed(fault=0, name="stall"))
        it.wait(5.0).add(Note(what="later"))
    (seen,) = it.seal().calls
    assert seen.failed_at_s is not None and seen.failed_at_s - seen.at_s == pytest.approx(7.0, abs=0.5)
    assert took_s(seen) == pytest.approx(7.0, abs=0.5)
    assert ending(seen) == "stalled, the agent kept it open"


def test_a_stalled_reply_ends_with_the_hang_up_of_its_agent():
    it = HistoryBuilder()
    it.message()
    it.stall(it.ask(), waits_s=2.0)
    it.wait(5.0).add(FaultHealed(fault=0, name="stall"))
    (seen,) = it.seal().calls
    assert seen.waited_until_s is None
    assert took_s(seen) == pytest.approx(2.0, abs=0.5)


def test_a_service_whose_reply_was_only_late_at_the_end_still_works():
    """The front end had left, and the recording ended in the middle of a slow reply that asks for a tool."""
    tell = HistoryBuilder()
    tell.message()
    tell.give_up(1.0)
    tell.reply(tell.ask(1), tools=[True], how="stalled", delivered=0, slowed=True)
    tell.end("", ended="gave up")
    history = tell.seal()
    (call,) = history.calls
    assert history.is_cut_short(history.turns[0]) and ending(call) == "late, and still coming"
