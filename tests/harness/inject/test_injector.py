"""The injector: where in which reply each fault strikes."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.harness.inject.rig import BODY, ENDS, HEAD, PEER, Rig
from wedgehog.harness.network.base import (
    Downstream,
    WholeLink,
)
from wedgehog.harness.record.events.fault import FaultArmed, FaultHealed
from wedgehog.harness.scenario.fault_config import FaultConfig


@pytest.mark.parametrize(
    ("at", "offset"),
    [
        ({"byte": 33}, HEAD + 33),
        ({"byte": 0}, HEAD),
        ({"event": 0}, HEAD),
        ({"event": 1}, HEAD + 50),
        ({"event": 3}, HEAD + 200),
        ({"phase": "body"}, HEAD),
        ({"phase": "terminal"}, HEAD + 160),
        ({"phase": "headers"}, 0),
        ({}, 0),
    ],
)
async def test_a_wire_fault_is_armed_at_the_absolute_byte_that_its_trigger_names(
    rig: Any, at: dict[str, Any], offset: int
):
    """What the connection carried before, the head and the body's offset add up; the fake need not stop on the way."""
    it = rig({"at": at, "do": {"cut": "fin"}})
    await it.injector.before_turn(1)
    stops = await it.call(carried=1000)
    assert list(stops) == []
    assert it.strikes[0].spot == Downstream((PEER[0], PEER[1] + 1), 1000 + offset)
    assert not it.fired, "armed is not fired"


@pytest.mark.parametrize("at", [{"byte": BODY}, {"byte": BODY + 1}, {"event": len(ENDS) + 1}])
async def test_a_place_that_the_reply_does_not_have_is_never_struck(rig: Any, at: dict[str, Any]):
    """A fault that cannot be reached never fires, and the turn ends without its healing being told."""
    it = rig({"at": at, "do": {"stall": "forever"}})
    await it.injector.before_turn(1)
    await it.call()
    await it.injector.after_turn(1)
    assert (it.strikes, it.fired, list(it.history.of(FaultHealed))) == ([], [], [])
    assert len(list(it.history.of(FaultArmed))) == 1


@pytest.mark.parametrize(("at", "byte"), [({"event": 1}, BODY // 2), ({"phase": "terminal"}, BODY - 1)])
async def test_a_reply_that_is_not_streamed_is_struck_too(rig: Any, at: dict[str, Any], byte: int):
    """There are no events in a JSON body: its middle counts, and for its end the byte before the last."""
    it = rig({"at": at, "do": "cut"})
    await it.injector.before_turn(1)
    await it.ask(it.arrives(), stream=False)
    assert [strike.spot.at for strike in it.strikes] == [HEAD + byte]


async def test_a_fault_that_begins_when_it_is_armed_makes_the_fake_stop_at_its_spot(rig: Any):
    """Drip has no byte of its own: the fake writes up to the trigger, and only then the link is struck."""
    it = rig({"at": {"event": 1}, "do": {"drip": 0.5}})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call)) == [50]
    assert not it.strikes
    await it.ask(call, at=50)
    assert it.strikes[0].spot == WholeLink((PEER[0], PEER[1] + 1), HEAD + 50)


async def test_every_write_is_admitted_by_the_link_with_what_the_connection_has_carried(rig: Any):
    """So that a limit which is armed for one connection cuts no other short."""
    it = rig()
    call = it.arrives()
    await it.ask(call, carried=10)
    await it.ask(call, at=50, carried=10)
    assert [carried for _, carried in it.link.admitted] == [10, 10 + HEAD + 50]


@pytest.mark.parametrize(
    ("words", "struck"),
    [
        ({}, [1]),
        ({"at": {"attempt": 2}}, [2]),
        ({"times": 2}, [1, 2]),
        ({"at": {"attempt": 2}, "times": 2}, [2, 3]),
        ({"times": "always"}, [1, 2, 3, 4]),
    ],
)
async def test_attempt_and_times_choose_among_a_steps_attempts(rig: Any, words: dict[str, Any], struck: list[int]):
    """The first attempt that is hit, and how many from there on."""
    it = rig({"at": {"event": 1}, "do": "cut", **words})
    await it.injector.before_turn(1)
    hit = []
    for attempt in range(1, 5):
        before = len(it.strikes)
        await it.call(attempt=attempt, conn=attempt)
        hit += [attempt] if len(it.strikes) > before else []
    assert hit == struck


@pytest.mark.parametrize(
    "place", [{"step": 1}, {"step": 3}, {"turn": 2, "step": 2}, {"step": 2, "background": "title"}]
)
async def test_other_turns_steps_and_background_calls_are_left_alone(rig: Any, place: dict[str, Any]):
    """A title that happens to be asked for in step 2 is not step 2."""
    it = rig({"at": {"step": 2, "byte": 5}, "do": "cut"})
    await it.injector.before_turn(1)
    await it.call(**place)
    assert not it.strikes
    await it.call(step=2)
    assert len(it.strikes) == 1


async def test_a_fault_on_background_calls_leaves_the_conversation_alone(rig: Any):
    """Background calls have no step of their own: the first of the turn is hit."""
    it = rig({"at": {"byte": 5, "on": "background"}, "do": "cut"})
    await it.injector.before_turn(1)
    await it.call()
    assert not it.strikes
    await it.call(step=4, background="title")
    assert len(it.strikes) == 1


@pytest.mark.parametrize(("end", "fired"), [("hits", 1), ("ended", 0), ("waits", 0)])
async def test_a_title_that_is_asked_for_while_its_turn_ends_is_hit(rig: Any, manual_clock: Any, end: str, fired: int):
    """The turn's end waits a second at most for the proof of a fault on a background call that is under way."""
    it = rig({"at": {"byte": 5, "on": "background"}, "do": {"stall": "forever"}})
    await it.injector.before_turn(1)
    call = it.arrives(background="title")
    ending = asyncio.create_task(it.injector.after_turn(1))
    await manual_clock.advance(0.1)
    assert not ending.done()
    await it.ask(call)
    if end == "hits":
        await it.strikes[0].hits()
    elif end == "ended":
        it.injector.ended(call, paid=True)
    await manual_clock.advance(0.1 if end != "waits" else 1.0)
    assert ending.done() and len(it.fired) == fired
    assert it.strikes[0].healed


async def test_attempts_are_counted_for_the_model_that_the_trigger_names(rig: Any):
    """A candidate further down the list is hit at its own first attempt, which is not the step's."""
    it = rig({"at": {"byte": 5, "model_name": "m2"}, "do": "cut"})
    await it.injector.before_turn(1)
    for model in ("m1", "m1", "m2", "m2"):
        await it.call(model=model)
    assert [strike.spot.at for strike in it.strikes] == [HEAD + 5]
    await it.strikes[0].hits()
    assert it.fired[0].call == 3


@pytest.mark.parametrize(
    ("sticks_to", "hit"), [("call", [True, False, False]), ("connection", [True, True, False]), ("link", [True] * 3)]
)
async def test_a_fault_sticks_to_a_call_a_connection_or_the_link(rig: Any, sticks_to: str, hit: list[bool]):
    """The retry on the same connection, and the one on a fresh one."""
    it = rig({"at": {"byte": 5}, "do": "cut", "sticks_to": sticks_to})
    await it.injector.before_turn(1)
    seen = []
    for attempt, conn in enumerate((1, 1, 2), start=1):
        before = len(it.strikes)
        await it.call(attempt=attempt, conn=conn)
        seen.append(len(it.strikes) > before)
    assert seen == hit


async def test_a_request_that_our_own_validator_refused_is_not_struck(rig: Any):
    """Its 400 must reach the agent whole, or the cause would be unknown."""
    it = rig({"at": {"byte": 5}, "do": "cut"})
    await it.injector.before_turn(1)
    call = it.arrives()
    it.injector.refused(call)
    assert list(await it.ask(call)) == []
    assert not it.strikes


async def test_one_reply_is_limited_by_one_fault_only(rig: Any):
    """Two cuts of one reply would each have to prove itself; the first line of the plan counts."""
    it = rig({"at": {"byte": 5}, "do": "cut"}, {"at": {"byte": 50}, "do": "cut"})
    await it.injector.before_turn(1)
    await it.call()
    assert [strike.spot.at for strike in it.strikes] == [HEAD + 5]


async def test_a_healed_fault_does_not_strike_again(rig: Any):
    """The recovery message meets a whole world."""
    it = rig({"at": {"byte": 5}, "do": "cut", "times": "always", "sticks_to": "link"})
    await it.injector.before_turn(1)
    await it.call()
    await it.injector.after_turn(1)
    await it.injector.before_turn(2)
    await it.call(turn=2)
    await it.call(turn=1)
    assert len(it.strikes) == 1 and it.strikes[0].healed


MIDDLE = {"do": {"cut": {"then": "rst"}}, "at": {"byte": 33}}


@pytest.mark.parametrize(
    ("words", "paused"),
    [
        (MIDDLE, True),
        ({**MIDDLE, "at": {"byte": 33, "after_s": 0}}, False),
        ({**MIDDLE, "do": {"stall": "forever"}}, False),
        ({**MIDDLE, "at": {"event": 2}}, False),
        ({**MIDDLE, "at": {"phase": "linger"}}, False),
        ({**MIDDLE, "at": {"phase": "headers"}}, False),
    ],
)
async def test_a_break_in_the_middle_comes_a_moment_after_the_bytes_before_it(
    rig: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch, settled: Any, words: dict[str, Any], paused: bool
):
    """A client reads them in that time. A silence needs no pause, nor does the end of a stream."""
    monkeypatch.setattr(Rig, "planned", staticmethod(lambda it: FaultConfig.model_validate(it).planned().paused()))
    it = rig(words)
    call = it.arrives()
    stops = await it.ask(call)
    if not paused:
        assert it.strikes or stops
        return
    assert (stops, it.strikes) == ([33], [])
    holding = asyncio.create_task(it.ask(call, 33))
    await settled()
    await it.clock.advance(0.19)
    await settled()
    assert not holding.done() and not it.strikes
    await it.clock.advance(0.02)
    await holding
    assert it.strikes[0].spot.at == HEAD + 33
