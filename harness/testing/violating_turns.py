"""Turns that go wrong: silent, late, lost, passed off as answered, or paid for when nobody waits any more."""

from collections.abc import Mapping

from hypothesis import strategies as st

from wedgehog.harness.testing.breaking import BoundValue, Violation, pick
from wedgehog.harness.testing.history_builder import CUT_TEXT
from wedgehog.harness.testing.valid_runs import RunDraw


def _error_surfaced(play: RunDraw) -> Mapping[str, BoundValue]:
    """The provider stays down, and the user gets an apology or nothing at all."""
    play.tell.message()
    for _ in range(play.draw(st.integers(1, 3))):
        play.tell.refuse(play.ask(1), 503)
        play.tell.wait(1)
    play.tell.end(play.draw(st.sampled_from(["", "Sorry, I can't help with that right now."])))
    return {}


def _session_recovers(play: RunDraw) -> Mapping[str, BoundValue]:
    """No message is answered any more, after a kill or without one; each ends in an honest error."""
    if play.draw(st.booleans()):
        play.tell.message()
        play.ask(1)
        play.tell.kill()
    for kind in (*play.draw(st.sampled_from([(), ("user", "user", "user")])), "recovery", "recovery"):
        play.tell.message(kind)
        play.tell.refuse(play.ask(1), 503)
        play.tell.fails()
    return {}


def _killed_at_its_deadline(play: RunDraw) -> Mapping[str, BoundValue]:
    play.tell.message()
    call = play.ask(1)
    play.tell.wait(121.5).deadline(120)
    play.tell.reply(call, how="hung up", delivered=0)
    # What follows is told under the deadline: an agent that is being stopped may do anything.
    for _ in range(play.draw(st.sampled_from([0, 40]))):
        play.tell.refuse(play.ask(1), 401)
    play.tell.end("", ended="deadline", exit_code=play.draw(st.sampled_from([0, -2])))
    return {}


def _slow_to_the_end(play: RunDraw) -> Mapping[str, BoundValue]:
    play.tell.message()
    play.tell.reply(play.ask(1), f"Done {play.tell.nonce}", took_s=play.draw(st.sampled_from([122.0, 500.0])))
    play.tell.end()
    return {}


def _front_end_waited_in_vain(play: RunDraw) -> Mapping[str, BoundValue]:
    play.tell.message()
    call = play.ask(1)
    play.tell.wait(90).give_up(after_s=90.0)
    play.tell.reply(call, how="hung up", delivered=0)
    play.tell.end("", ended="gave up", exit_code=None)
    return {"turn_s": 90}


def _never_asks_again(play: RunDraw) -> Mapping[str, BoundValue]:
    play.tell.message()
    play.tell.answer_step(1)
    play.tell.end().message()
    play.tell.wait(62).start_missed(60)
    play.tell.end("", ended="deadline", exit_code=-2)
    return {}


def _turn_deadline(play: RunDraw) -> Mapping[str, BoundValue]:
    return pick(play, _killed_at_its_deadline, _slow_to_the_end, _front_end_waited_in_vain, _never_asks_again)


def _turn_answered(play: RunDraw) -> Mapping[str, BoundValue]:
    """One stall, and the turn is lost, if with an honest error."""
    play.tell.message()
    play.tell.stall(play.ask(1))
    play.tell.fails("Error: Timeout")
    return {}


def _no_spend_after_abort(play: RunDraw) -> Mapping[str, BoundValue]:
    """The user or the front end has gone, and the loop goes on."""
    play.tell.message()
    call = play.ask(1)
    by_abort = play.draw(st.booleans())
    if by_abort:
        play.tell.abort()
    else:
        play.tell.wait(30).give_up(after_s=30.0)
    play.tell.reply(call, tools=[True])
    play.tell.wait(play.draw(st.sampled_from([3.0, 60.0])))
    for _ in range(play.draw(st.integers(1, 20))):
        play.tell.reply(play.ask(2), tools=[True])
    play.tell.end("", ended="aborted" if by_abort else "gave up", exit_code=None)
    return {}


def _truncation_noticed(play: RunDraw) -> Mapping[str, BoundValue]:
    """Half a reply is the answer, and the exit code is 0."""
    play.tell.message()
    if play.draw(st.booleans()):
        play.tell.cut(play.ask(1), CUT_TEXT)
    else:
        play.tell.reply(play.ask(1), CUT_TEXT, stop="max_tokens")
    play.tell.end(CUT_TEXT)
    return {}


TURNS: Mapping[str, Violation] = {
    "error_surfaced": _error_surfaced,
    "no_spend_after_abort": _no_spend_after_abort,
    "session_recovers": _session_recovers,
    "truncation_noticed": _truncation_noticed,
    "turn_answered": _turn_answered,
    "turn_deadline": _turn_deadline,
}
