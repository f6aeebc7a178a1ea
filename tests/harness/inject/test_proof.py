"""The injector: what proves that a fault has hit, and that it is always healed."""

import asyncio
from typing import Any

import pytest

from tests.harness.inject.rig import HEAD
from wedgehog.harness.inject.limited_reply import PartialDelivery
from wedgehog.harness.network.base import (
    NetworkError,
)
from wedgehog.harness.record.events.fault import FaultHealed, FaultUnproven
from wedgehog.harness.record.events.run import Trouble


async def test_a_fault_has_fired_when_the_network_proves_it_and_says_which_call_it_hit(rig: Any):
    """The event carries the call's place and the bytes of its body that were let through."""
    it = rig({"at": {"step": 2, "event": 1}, "do": {"cut": {"then": "rst"}}})
    await it.injector.before_turn(1)
    await it.call(step=1)
    await it.call(step=2, attempt=1)
    assert not it.fired
    await it.strikes[0].hits("the kernel counted")
    (fired,) = it.fired
    assert (fired.turn, fired.step, fired.attempt, fired.call, fired.bytes) == (1, 2, 1, 2, 50)
    assert fired.proof == "the kernel counted"
    assert it.delivered[0] == (2, PartialDelivery(50, "cut"))


async def test_a_strike_that_hit_nothing_has_not_fired_and_no_more_than_its_limit_can_have_passed(rig: Any):
    """The connection ended before the byte: no call is harmed by a fault that did not strike."""
    it = rig({"at": {"event": 1}, "do": "cut"})
    await it.injector.before_turn(1)
    await it.call()
    await it.injector.after_turn(1)
    assert not it.fired
    assert it.delivered == [(1, PartialDelivery(50, "cut"))]


async def test_faults_are_removed_in_the_reverse_order(rig: Any, settled: Any, manual_clock: Any):
    """A slow one that was made later stands behind the others, which wait until it has taken their bytes."""
    it = rig({"at": {"after_s": 1}, "do": {"latency": 2}}, {"at": {"after_s": 2}, "do": {"bandwidth": 1}})
    await it.injector.before_turn(1)
    await manual_clock.advance(3)
    latency, bandwidth = it.strikes
    bandwidth.heals.clear()
    healing = asyncio.create_task(it.injector.after_turn(1))
    await settled()
    assert not latency.healed
    bandwidth.heals.set()
    await healing
    assert latency.healed


async def test_a_fault_that_cannot_be_removed_breaks_the_run(rig: Any, settled: Any):
    """The next turn would meet it, and the agent would be blamed."""
    it = rig({"do": {"latency": 2}})
    await it.injector.before_turn(1)
    asking = asyncio.create_task(it.ask(it.arrives()))
    await settled()
    it.strikes[0].stays = NetworkError("the server is busy")
    await it.injector.after_turn(1)
    assert it.injector.broken.is_set()
    assert [event.what for event in it.history.of(Trouble)] == ["the network failed: the server is busy"]
    asking.cancel()


async def test_a_proof_that_is_found_while_the_fault_is_healed_still_counts(rig: Any, settled: Any):
    """An agent that ends at once can be faster than the network's count; its fault struck all the same."""
    it = rig({"at": {"event": 1}, "do": "cut"})
    await it.injector.before_turn(1)
    await it.call()
    it.strikes[0].proves_when_healed = True
    await it.injector.after_turn(1)
    await settled()
    assert [fired.proof for fired in it.fired] == ["counted at last"]
    assert set(it.delivered) == {(1, PartialDelivery(50, "cut"))}
    assert [healed.fault for healed in it.history.of(FaultHealed)] == [0]


async def test_a_strike_that_was_being_armed_when_its_turn_ended_is_healed_too(rig: Any, settled: Any):
    """Else the next turn would meet it."""
    it = rig({"at": {"event": 1}, "do": "cut"})
    await it.injector.before_turn(1)
    it.link.open.clear()
    asking = asyncio.create_task(it.call())
    await settled()
    await it.injector.after_turn(1)
    it.link.open.set()
    await asking
    assert [strike.healed for strike in it.strikes] == [True]


async def test_a_stall_that_ends_is_held_by_the_fake_and_never_asked_of_the_network(rig: Any, manual_clock: Any):
    """No byte is lost: the reply goes on after its time."""
    it = rig({"at": {"event": 1}, "do": {"stall": 30}})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call)) == [50]
    holding = asyncio.create_task(it.ask(call, at=50))
    await manual_clock.advance(29)
    assert not holding.done() and it.fired[0].bytes == 50
    await manual_clock.advance(1)
    assert holding.done() and not it.strikes
    assert it.injector.limits(call) is None


async def test_a_held_stall_is_let_go_when_its_turn_is_over(rig: Any, manual_clock: Any):
    """Nobody waits for the rest of it."""
    it = rig({"at": {"event": 1}, "do": {"stall": 30}})
    await it.injector.before_turn(1)
    call = it.arrives()
    await it.ask(call)
    holding = asyncio.create_task(it.ask(call, at=50))
    await manual_clock.advance(1)
    await it.injector.after_turn(1)
    await manual_clock.advance(0)
    assert holding.done()


async def test_after_s_delays_a_strike_at_its_spot(rig: Any, manual_clock: Any):
    """The reply stands at the event until the time has come."""
    it = rig({"at": {"event": 2, "after_s": 3}, "do": "cut"})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call)) == [120]
    holding = asyncio.create_task(it.ask(call, at=120))
    await manual_clock.advance(2.9)
    assert not it.strikes
    await manual_clock.advance(0.2)
    assert holding.done() and it.strikes[0].spot.at == HEAD + 120


@pytest.mark.parametrize("hung_up_first", [False, True])
async def test_a_proven_stall_whose_agent_hung_up_is_healed_at_once(rig: Any, settled: Any, hung_up_first: bool):
    """Held ends add up on a link; one whose agent still waits is left alone until its turn is over."""
    it = rig({"at": {"event": 1}, "do": {"stall": "forever"}, "times": "always"})
    await it.injector.before_turn(1)
    left, waiting = it.arrives(), it.arrives(attempt=2)
    await it.ask(left, conn=1)
    await it.ask(waiting, conn=2)
    await it.strikes[1].hits()
    if hung_up_first:
        it.injector.closed(left)
        await settled()
        assert not it.strikes[0].healed, "nothing proves yet how much it got"
    await it.strikes[0].hits()
    if not hung_up_first:
        assert not it.strikes[0].healed
        it.injector.closed(left)
        await settled()
    assert [strike.healed for strike in it.strikes] == [True, False]
    assert not list(it.history.of(FaultHealed)), "the fault itself goes on"
    await it.injector.after_turn(1)
    assert it.strikes[1].healed and not list(it.history.of(FaultUnproven))


async def test_a_heal_that_is_under_way_is_finished_before_the_turn_is_over(rig: Any, settled: Any):
    """Else the next turn's first strike would meet an end that is still held."""
    it = rig({"at": {"event": 1}, "do": {"stall": "forever"}})
    await it.injector.before_turn(1)
    await it.call()
    strike = it.strikes[0]
    await strike.hits()
    strike.heals.clear()
    it.injector.closed(1)
    ending = asyncio.create_task(it.injector.after_turn(1))
    await settled()
    assert not ending.done()
    strike.heals.set()
    await ending
    assert strike.healed


async def test_a_turn_that_ends_while_its_fault_is_being_healed_waits_for_it(rig: Any, manual_clock: Any):
    """`heal: {after_s: 30}`, and the agent ends in the same moment."""
    it = rig({"at": {"byte": 5}, "do": {"stall": "forever"}, "heal": {"after_s": 30}})
    await it.injector.before_turn(1)
    await it.call()
    await it.strikes[0].hits()
    it.strikes[0].heals.clear()
    await manual_clock.advance(31)
    ending = asyncio.create_task(it.injector.after_turn(1))
    await manual_clock.advance(0)
    assert not ending.done()
    it.strikes[0].heals.set()
    await ending
    assert [event.fault for event in it.history.of(FaultHealed)] == [0]


@pytest.mark.parametrize("do", ["cut", {"cut": "rst"}, {"stall": "forever"}])
async def test_a_strike_that_never_proves_itself_is_told_when_it_is_healed(rig: Any, do: Any):
    """How much the agent got is unknown, and no verdict can rest on it."""
    it = rig({"at": {"event": 1}, "do": do}, {"at": {"attempt": 2, "event": 1}, "do": do})
    await it.injector.before_turn(1)
    await it.call()
    await it.call(attempt=2)
    await it.strikes[1].hits()
    assert not list(it.history.of(FaultUnproven)), "it may still prove itself"
    await it.injector.after_turn(1)
    assert [(event.fault, event.name, event.call) for event in it.history.of(FaultUnproven)] == [
        (0, it.strikes[0].fault.name, 1)
    ]


@pytest.mark.parametrize(
    "words",
    [
        {"at": {"event": 1}, "do": {"drip": 0.5}},
        {"at": {"event": 1}, "do": {"latency": 1}},
        {"at": {"phase": "request", "byte": 5}, "do": "cut"},
    ],
)
async def test_what_loses_no_byte_of_a_reply_needs_no_proof(rig: Any, words: dict[str, Any]):
    """A pace, a delay, an upload: such a fault has fired or it has not."""
    it = rig(words)
    await it.injector.before_turn(1)
    call = it.arrives()
    await it.ask(call)
    await it.ask(call, at=50)
    assert it.strikes
    await it.injector.after_turn(1)
    assert not list(it.history.of(FaultUnproven))
