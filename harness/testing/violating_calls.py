"""Calls of the model that go wrong: too many, too dear, too hasty, or refused for good."""

from collections.abc import Mapping

from hypothesis import strategies as st

from wedgehog.harness.testing.breaking import BoundValue, Violation, pick
from wedgehog.harness.testing.valid_runs import RunDraw


def _paid_too_often(play: RunDraw) -> Mapping[str, BoundValue]:
    """One step is paid for again and again, and each attempt brings a little."""
    play.tell.message()
    for _ in range(play.draw(st.integers(14, 30))):
        play.tell.stall(play.ask(1), delivered=5, waits_s=1)
    play.tell.fails()
    return {}


def _paid_for_nothing(play: RunDraw) -> Mapping[str, BoundValue]:
    """Across two steps nothing arrives: each step is within its bound."""
    play.tell.message()
    for attempt in range(play.draw(st.integers(12, 24))):
        play.tell.stall(play.ask(1 + attempt % 2), waits_s=1)
    play.tell.fails()
    return {}


def _no_progress(play: RunDraw) -> Mapping[str, BoundValue]:
    """More requests than the spec allows come to nothing, paid or refused."""
    play.tell.message()
    for attempt in range(play.draw(st.integers(12, 14))):
        call = play.ask(1)
        if attempt % 2:
            play.tell.refuse(call)
        else:
            play.tell.stall(call, delivered=5, waits_s=1)
        play.tell.wait(1)
    play.tell.fails()
    return {"calls_without_progress": 11}


def _too_many_calls(play: RunDraw) -> Mapping[str, BoundValue]:
    """More requests than the spec allows, background ones among them."""
    play.tell.message()
    for _ in range(60):
        play.tell.reply(play.tell.ask(1, background="check"), "ok")
    play.tell.answer_step(1)
    play.tell.end()
    return {"calls_per_turn": 60}


def _storm_between_turns(play: RunDraw) -> Mapping[str, BoundValue]:
    """A storm of paid calls that no stimulus asked for."""
    play.tell.message()
    play.tell.answer_step(1)
    play.tell.end()
    for _ in range(play.draw(st.integers(14, 40))):
        play.tell.stall(play.tell.ask(1, turn=0), waits_s=1)
    return {}


def _paid_call_bound(play: RunDraw) -> Mapping[str, BoundValue]:
    return pick(play, _paid_too_often, _paid_for_nothing, _no_progress, _too_many_calls, _storm_between_turns)


def _spend_bound(play: RunDraw) -> Mapping[str, BoundValue]:
    """A huge context, again and again: $3 per million input tokens."""
    play.tell.message()
    for _ in range(5):
        play.tell.stall(play.ask(1), delivered=5, waits_s=1)
    play.tell.reply(play.ask(1), f"Done {play.tell.nonce}", input_tokens=1_000_000)
    play.tell.end()
    return {"usd_per_turn": 2.5}


def _deaf_to_retry_after(play: RunDraw) -> Mapping[str, BoundValue]:
    is_date = play.draw(st.booleans())
    play.tell.message()
    play.tell.refuse(play.ask(1), 429, retry_after_s=20, is_date=is_date)
    play.tell.wait(16.5 if is_date else 17.5)
    play.tell.answer_step(1)
    play.tell.end()
    return {}


def _hopeless_repeat(play: RunDraw) -> Mapping[str, BoundValue]:
    play.tell.message()
    play.tell.refuse(play.ask(1), play.draw(st.sampled_from([400, 401])))
    play.tell.wait(5)
    play.tell.refuse(play.ask(1), 503)
    play.tell.fails()
    return {}


def _hammering(play: RunDraw) -> Mapping[str, BoundValue]:
    play.tell.message()
    for _ in range(play.draw(st.integers(4, 8))):
        call = play.ask(1)
        if play.draw(st.booleans()):
            play.tell.refuse(call, 503)
        else:
            play.tell.cut(call)
        play.tell.wait(0.02)
    play.tell.fails()
    return {}


def _endless_attempts(play: RunDraw) -> Mapping[str, BoundValue]:
    play.tell.message()
    for _ in range(play.draw(st.integers(31, 45))):
        play.tell.refuse(play.ask(1), 503)
        play.tell.wait(1)
    play.tell.fails()
    return {}


def _retry_discipline(play: RunDraw) -> Mapping[str, BoundValue]:
    return pick(play, _deaf_to_retry_after, _hopeless_repeat, _hammering, _endless_attempts)


def _tool_call_pairing(play: RunDraw) -> Mapping[str, BoundValue]:
    """The history holds a call without its result."""
    play.tell.message()
    play.tell.refuse(play.ask(1), 400, pairing=True, scripted=False)
    play.tell.fails()
    return {}


CALLS: Mapping[str, Violation] = {
    "paid_call_bound": _paid_call_bound,
    "retry_discipline": _retry_discipline,
    "spend_bound": _spend_bound,
    "tool_call_pairing": _tool_call_pairing,
}
