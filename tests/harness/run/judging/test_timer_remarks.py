"""Each timer of a spec is told: it fired, a line of the log names it at its time, or there is no sign of it."""

import pytest

from wedgehog.harness.agents.spec_keys import Timeout
from wedgehog.harness.record.history import History
from wedgehog.harness.run.judging.timer_remarks import timer_remarks
from wedgehog.harness.testing import HistoryBuilder

IDLE = Timeout(name="idle", s=20)
TYPING = Timeout(name="typing", s=120, says="typing TTL")
FRONT = Timeout(name="front-end", s=90)
CLIENT = Timeout(name="client", s=60, inside="front-end")


def said(history: History, *timers: Timeout) -> list[str]:
    return list(timer_remarks(timers, history))


def test_a_timer_that_fired_and_one_without_a_sign_are_both_told():
    """A reader asks which of the agent's timers fired, and which did not."""
    tell = HistoryBuilder(time_scale=10)
    tell.message()
    tell.stall(tell.ask(1), waits_s=2.0)
    fired, silent = said(tell.fails("Error: Timeout").seal(), IDLE, TYPING)
    assert fired.startswith("turn 1: its timer 'idle' (20 s; here 2 s) fired: it hung up on call 1.1.1")
    assert silent == "no sign that its timer 'typing' (120 s; here 12 s) fired in this run"
    assert said(tell.seal()) == []


@pytest.mark.parametrize(("after_s", "fires"), [(6.0, True), (4.0, False)])
def test_the_front_end_that_the_harness_plays_is_a_timer_of_the_spec(after_s: float, fires: bool):
    """Its wait is that of the outermost timer; an inner one of that time is the agent's own."""
    tell = HistoryBuilder(time_scale=15)
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.give_up(after_s)
    first, *more = said(tell.end("", ended="gave up").seal(), CLIENT, FRONT)
    outer = "turn 1: its timer 'front-end' (90 s; here 6 s) fired: the front end, which the harness plays, gave up"
    assert (first == f"{outer} at the end of its wait of 6.00 s") is fires
    assert any("no sign that its timer 'client' (60 s; here 4 s)" in it for it in (first, *more))


@pytest.mark.parametrize(("seconds", "turn"), [(12, "turn 1"), (17, "turn 2"), (30, "")])
def test_a_line_of_the_log_with_a_time_tells_after_which_message_a_timer_spoke(seconds: int, turn: str):
    """It may be printed in a later turn; a time that fits no message tells nothing."""
    tell = HistoryBuilder(time_scale=10, started="2026-06-01T12:00:00+00:00")
    tell.message()
    tell.wait(5.0)
    tell.end("", ended="deadline")
    tell.message()
    tell.wait(1.0)
    tell.fails(f"2026-06-01T14:00:{seconds}+02:00: typing TTL reached")
    every = said(tell.seal(), TYPING)
    told = [it for it in every if "by the time on its own line" in it]
    assert [it.partition(":")[0] for it in told] == ([turn] if turn else [])
    assert any("no call and no turn ended" in it for it in every) is not bool(turn)
    assert all("its timer 'typing' (120 s; here 12 s) fired 12.0 to 13.0 s after the message" in it for it in told)


def test_a_killed_agent_has_no_timer_left_and_of_two_messages_both_are_named():
    """The kill ended the first message's timer; the line cannot tell between the others."""
    tell = HistoryBuilder(time_scale=10, started="2026-06-01T12:00:00")
    tell.message()
    tell.kill()
    for _ in range(2):
        tell.message()
        tell.end("", ended="deadline")
    tell.message()
    tell.fails("2026-06-01T12:00:12Z: typing TTL reached")
    (told,) = [it for it in said(tell.seal(), TYPING) if "by the time on its own line" in it]
    assert told.startswith("turn 2 or turn 3 or turn 4: by the time")


def test_a_timer_that_counts_from_the_message_was_not_due_where_the_agent_ran_for_less():
    """A reader asks for each message: after a kill, and in the last turns, its time does not come."""
    tell = HistoryBuilder(time_scale=10, started="2026-06-01T12:00:00")
    tell.message()
    tell.wait(1.0)
    tell.kill()
    tell.message()
    tell.wait(9.0)
    tell.end("", ended="deadline")
    tell.message()
    tell.wait(5.0)
    tell.fails("2026-06-01T12:00:13Z: typing TTL reached")
    every = said(tell.seal(), TYPING)
    assert any(it.startswith("turn 2: by the time on its own line") for it in every)
    (early,) = [it for it in every if "was not due" in it]
    assert early.startswith("turn 1, turn 3: its timer 'typing' (120 s; here 12 s) was not due, as the agent ")
    assert "ran only 1.01 s, 5.02 s after the message" in early
    assert early.endswith(". The line about it in the output of turn 3 belongs, by its time, to an earlier message")
