"""Which timer has fired is measured; the agent's words only decide between timers that fit."""

from typing import Any

import pytest

from wedgehog.harness.agents.spec_keys import Timeout
from wedgehog.harness.run.judging.fired_timers import timers_fired
from wedgehog.harness.testing import HistoryBuilder

FRONT = Timeout(name="front-end", s=90)
CLIENT = Timeout(name="client", s=60, says="timed out", inside="front-end")
BUDGET = Timeout(name="budget", s=75, inside="front-end")
CHAIN = (CLIENT, BUDGET, FRONT)


def said(tell: HistoryBuilder, *timers: Timeout) -> list[str]:
    history = tell.seal()
    return list(timers_fired(history.turns[0], timers, history))


def stalled_after(first_s: float, waits_s: float, words: str, **end: Any) -> HistoryBuilder:
    """A first call that is answered, a second one that is given up, and the end of the turn; 12 times faster."""
    tell = HistoryBuilder(time_scale=12)
    tell.message()
    tell.reply(tell.ask(1), tools=[True], took_s=first_s)
    tell.stall(tell.ask(2), waits_s=waits_s)
    return tell.end(words, **end)


def test_the_budget_that_ended_the_call_is_named_though_the_words_are_the_clients():
    """73 of its 75 s were left for the second call."""
    tell = stalled_after(0.17, 6.05, "", error="the request to the model timed out", exit_code=1)
    first, *more = said(tell, *CHAIN)
    assert first.startswith(
        "turn 1: its timer 'budget' (75 s; here 6.25 s) fired: it hung up on call 1.2.1 after 6.09 s"
    )
    assert first.endswith(", 6.29 s into the turn")
    assert len(more) == 1
    assert more[0].startswith("turn 1: its words name its timer 'client' (60 s; here 5 s), but no call")


def test_the_client_that_gave_up_in_silence_is_named():
    """Its user reads an apology, and no word of a timer."""
    (line,) = said(stalled_after(0.95, 5.0, "I'm sorry, I had trouble with that."), *CHAIN)
    assert line.startswith("turn 1: its timer 'client' (60 s; here 5 s) fired: it hung up on call 1.2.1 after 5.04 s")
    assert line.endswith(", 6.02 s into the turn")


def test_the_timer_that_fits_at_once_is_named_before_one_that_would_be_late():
    """The call was held for the client's 5 s; the turn was by chance half a second over the budget."""
    (line,) = said(stalled_after(1.6, 5.0, "I'm sorry, I had trouble with that."), *CHAIN)
    assert line.startswith("turn 1: its timer 'client' (60 s; here 5 s) fired: it hung up on call 1.2.1 after 5.04 s")


def two_that_fit(*, words: str = "", again: bool = False) -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    tell.stall(tell.ask(1), waits_s=10)
    if again:
        tell.refuse(tell.ask(1), 503)
    return tell.fails(f"Error: {words}")


INNER = Timeout(name="idle", s=10, says="no byte", inside="total")
OUTER = Timeout(name="total", s=10.1, says="no time left")


@pytest.mark.parametrize(
    ("how", "named", "unsure"),
    [
        ({"words": "no byte came"}, "'idle' (10 s; here 10 s)", False),
        ({"words": "no time left"}, "'total' (10.1 s; here 10.1 s)", False),
        ({"again": True}, "'idle' (10 s; here 10 s)", False),
        ({}, "'idle' (10 s; here 10 s) or 'total' (10.1 s; here 10.1 s)", True),
    ],
)
def test_of_two_that_fit_the_words_decide_and_then_whether_the_turn_went_on(how: Any, named: str, unsure: bool):
    """Without either sign both are said."""
    (line,) = said(two_that_fit(**how), INNER, OUTER)
    assert line.startswith(f"turn 1: its timer {named} fired: it hung up on call 1.1.1 after 10.04 s")
    assert line.endswith("which of them cannot be told") is unsure


def test_a_timer_that_ended_many_calls_is_said_once():
    """With the shortest and the longest wait."""
    tell = HistoryBuilder()
    tell.message()
    for wait_s in (2.0, 2.1, 2.2):
        tell.stall(tell.ask(1), waits_s=wait_s)
    (line,) = said(tell.fails("Error: gave up"), Timeout(name="idle", s=2))
    assert line == "turn 1: its timer 'idle' (2 s; here 2 s) fired: it hung up on 3 calls after 2.04 s to 2.24 s"


def test_a_turn_that_ends_without_a_hang_up_may_have_ended_by_a_timer():
    """A tool hung, and no call was open."""
    tell = HistoryBuilder(time_scale=10)
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.wait(8.9)
    total = Timeout(name="total", s=90)
    (line,) = said(tell.fails("Error: 90 s are over"), total)
    assert line.startswith("turn 1: its timer 'total' (90 s; here 9 s) fired: it ended the turn after 9.0")


def test_a_hang_up_that_was_not_seen_is_measured_by_the_end_of_the_turn():
    """The fault was healed as the turn ended, so that the close of the connection told nothing."""
    tell = HistoryBuilder(time_scale=12)
    tell.message()
    tell.reply(tell.ask(1), tools=[True], took_s=1.6)
    tell.reply(tell.ask(2), how="stalled", delivered=0, took_s=0)
    tell.wait(5)
    (line,) = said(tell.fails("Error: the request timed out"), *CHAIN)
    assert line.startswith("turn 1: its timer 'client' (60 s; here 5 s) fired: it ended the turn")


def test_what_we_ended_names_no_timer():
    """The deadline ended the call; that it took as long as a timer is chance."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.wait(10).deadline()
    tell.reply(call, how="hung up", delivered=0)
    assert said(tell.end("", ended="deadline"), INNER, OUTER) == []


def test_a_lag_of_our_own_makes_a_late_end_fit():
    """Its words were said, and nothing else fits."""
    tell = HistoryBuilder()
    tell.message()
    tell.stall(tell.ask(1), waits_s=12)
    (line,) = said(tell.lag(2.0).fails("Error: no byte came"), INNER)
    assert "its timer 'idle' (10 s; here 10 s) fired" in line


def test_a_timer_that_fits_only_with_our_lag_is_said_beside_the_one_that_fits_without():
    """Its words were said; the other's time was measured."""
    tell = HistoryBuilder()
    tell.message()
    tell.stall(tell.ask(1), waits_s=12)
    longer = Timeout(name="total", s=12)
    (line,) = said(tell.lag(2.0).fails("Error: no byte came"), INNER, longer)
    assert line.startswith("turn 1: its timer 'total' (12 s; here 12 s) or 'idle' (10 s; here 10 s) fired")


def test_an_answered_turn_names_no_timer():
    """It ended because it had an answer."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    assert said(tell.end(), Timeout(name="blink", s=0.1)) == []
