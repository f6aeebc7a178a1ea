"""The injector: a reply is held at its gate, and its last question goes to the link."""

import asyncio
from typing import Any

from tests.harness.inject.rig import HEAD, PEER
from wedgehog.harness.inject.limited_reply import PartialDelivery
from wedgehog.harness.network.base import (
    Downstream,
)


async def test_the_link_admits_a_write_after_all_else(rig: Any, settled: Any):
    """While a strike is being armed nothing is admitted: the armed limit might be another's by then."""
    it = rig({"at": {"event": 1}, "do": "cut"})
    await it.injector.before_turn(1)
    it.link.open.clear()
    asking = asyncio.create_task(it.call(carried=7))
    await settled()
    assert it.link.admitted == []
    it.link.open.set()
    await asking
    assert [carried for _, carried in it.link.admitted] == [7]


async def test_a_reply_that_was_held_is_admitted_after_its_hold(rig: Any, manual_clock: Any):
    """Thirty seconds ago the link was free; that says nothing about now."""
    it = rig({"at": {"event": 1}, "do": {"stall": 30}})
    await it.injector.before_turn(1)
    call = it.arrives()
    await it.ask(call)
    holding = asyncio.create_task(it.ask(call, at=50))
    await manual_clock.advance(29)
    assert len(it.link.admitted) == 1
    await manual_clock.advance(2)
    await holding
    assert [carried for _, carried in it.link.admitted] == [0, HEAD + 50]


async def test_a_reply_that_comes_out_of_its_hold_waits_for_a_limit_armed_meanwhile(rig: Any, manual_clock: Any):
    """Two gates at once: one is held, the other is struck, and the first may not write into the other's limit."""
    it = rig({"at": {"event": 1}, "do": {"stall": 30}}, {"at": {"attempt": 2, "byte": 0}, "do": "cut"})
    await it.injector.before_turn(1)
    held, struck = it.arrives(), it.arrives(attempt=2)
    await it.ask(held, conn=1)
    holding = asyncio.create_task(it.ask(held, at=50, conn=1))
    await manual_clock.advance(10)
    await it.ask(struck, conn=2)
    it.link.alone = it.strikes[0].spot.conn
    await manual_clock.advance(30)
    assert not holding.done(), "the hold is over, and the link is not free"
    it.link.give_way()
    await manual_clock.advance(0)
    assert holding.done()


async def test_two_gates_at_once_are_struck_and_proved_each_by_its_own(rig: Any, settled: Any):
    """Parallel requests: each limit lies on its own connection, and their proofs may come in any order."""
    it = rig({"at": {"event": 1}, "do": "cut", "times": 2})
    await it.injector.before_turn(1)
    it.link.open.clear()
    calls = [it.arrives(), it.arrives(attempt=2)]
    asking = [asyncio.create_task(it.ask(call, conn=call, carried=1000 * call)) for call in calls]
    await settled()
    it.link.open.set()
    await asyncio.gather(*asking)
    assert [strike.spot for strike in it.strikes] == [
        Downstream((PEER[0], PEER[1] + call), 1000 * call + HEAD + 50) for call in calls
    ]
    await it.strikes[1].hits()
    assert it.delivered == [(2, PartialDelivery(50, "cut"))]
    await it.strikes[0].hits()
    assert it.delivered[1:] == [(1, PartialDelivery(50, "cut"))]
    assert [fired.call for fired in it.fired] == [2, 1]


async def test_a_strike_whose_gate_is_cancelled_while_it_is_armed_is_healed_all_the_same(rig: Any, settled: Any):
    """The agent hung up in that very moment; half a strike would never be healed."""
    it = rig({"at": {"event": 1}, "do": "cut"})
    await it.injector.before_turn(1)
    it.link.told.clear()
    asking = asyncio.create_task(it.call())
    await settled()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    it.link.told.set()
    await settled()
    await it.injector.after_turn(1)
    assert [strike.healed for strike in it.strikes] == [True]
