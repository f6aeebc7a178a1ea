"""The injector: connections that a fault ends, and agents that do not wait."""

import asyncio
from typing import Any

import pytest

from tests.harness.inject.rig import PEER
from wedgehog.harness.inject.limited_reply import PartialDelivery
from wedgehog.harness.network.base import (
    WholeLink,
)


@pytest.mark.parametrize("do", ["refuse", {"down": "forever"}])
async def test_a_link_that_closes_in_mid_reply_is_opened_again_though_its_own_reply_died_with_it(
    rig: Any, manual_clock: Any, do: Any
):
    """The fault ends the very connection whose gate is asked; no code is left there that could heal it."""
    it = rig({"at": {"event": 1}, "do": do})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call)) == [50]
    it.link.told.clear()
    asking = asyncio.create_task(it.ask(call, at=50))
    await manual_clock.advance(0.1)
    assert [strike.spot for strike in it.strikes] == [WholeLink()], "the port is shut, and our probe is on its way"
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    it.injector.ended(call, paid=True)
    assert it.delivered == [(call, PartialDelivery(50, "cut"))]
    it.link.told.set()
    await manual_clock.advance(0)
    await it.strikes[0].hits("our own connect was refused")
    assert [(fired.call, fired.bytes) for fired in it.fired] == [(call, 50)]
    await it.injector.after_turn(1)
    assert [strike.healed for strike in it.strikes] == [True]


@pytest.mark.parametrize("at", [{"phase": "connect"}, {"after_s": 1}, {"event": 1}])
async def test_healing_waits_for_a_port_that_is_just_being_closed(rig: Any, manual_clock: Any, at: dict[str, Any]):
    """It would come too early otherwise, and the port would stay closed."""
    it = rig({"at": {"step": 2, **at} if "phase" in at else at, "do": "refuse"})
    await it.injector.before_turn(1)
    call = it.arrives()
    await it.ask(call)
    it.link.told.clear()
    asking = asyncio.create_task(it.ask(call, at=50))
    it.injector.ended(call, paid=True)
    await manual_clock.advance(1.1)
    healing = asyncio.create_task(it.injector.after_turn(1))
    await manual_clock.advance(0)
    assert len(it.strikes) == 1 and not healing.done()
    it.link.told.set()
    await asyncio.gather(healing, asking)
    assert it.strikes[0].healed


@pytest.mark.parametrize("do", ["refuse", {"down": "forever"}])
async def test_a_link_closes_at_the_event_that_its_trigger_names_and_not_before(rig: Any, manual_clock: Any, do: Any):
    """The fake stops there, the bytes before it get their moment to arrive, and no more follow until it is healed."""
    it = rig({"at": {"event": 2}, "do": do})
    await it.injector.before_turn(1)
    call = it.arrives()
    assert list(await it.ask(call)) == [120]
    await manual_clock.advance(5)
    assert not it.strikes and it.injector.limits(call) is None
    holding = asyncio.create_task(it.ask(call, at=120))
    await manual_clock.advance(0)
    assert not it.strikes and it.injector.limits(call) == "cut"
    await manual_clock.advance(0.1)
    assert [strike.spot for strike in it.strikes] == [WholeLink()]
    assert not holding.done()
    await it.injector.after_turn(1)
    await holding


@pytest.mark.parametrize("do", ["refuse", {"down": "forever"}])
async def test_a_request_that_is_faster_than_the_refusal_before_it_is_held_and_was_cut(
    rig: Any, manual_clock: Any, do: Any
):
    """It came on the open connection in the moment before that was closed; without a hold it would slip through."""
    it = rig({"at": {"step": 2, "phase": "connect"}, "do": do})
    await it.injector.before_turn(1)
    first = it.arrives(step=1)
    await it.ask(first)
    it.injector.ended(first, paid=True)
    fast = it.arrives(step=2)
    asking = asyncio.create_task(it.ask(fast))
    await manual_clock.advance(0)
    assert not it.strikes, "the reply before it is still on its way"
    assert it.injector.limits(fast) == "cut"
    await manual_clock.advance(0.1)
    assert len(it.strikes) == 1 and not asking.done()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    it.injector.ended(fast, paid=True)
    assert it.delivered == [(fast, PartialDelivery(0, "cut", headers=False))]
    await it.injector.after_turn(1)
    assert it.strikes[0].healed


async def test_only_the_step_that_is_refused_is_held(rig: Any, manual_clock: Any):
    """A background call passes, and so does the next step once all is healed."""
    it = rig({"at": {"step": 2, "phase": "connect"}, "do": "refuse"})
    await it.injector.before_turn(1)
    first = it.arrives(step=1)
    await it.ask(first)
    it.injector.ended(first, paid=True)
    await it.call(step=2, background="title")
    await it.injector.after_turn(1)
    await it.call(step=2)
    assert it.link.admitted[-1][0] == (PEER[0], PEER[1] + 1)


async def test_a_closing_link_drops_every_reply_that_is_under_way(rig: Any, manual_clock: Any):
    """It takes all its connections with it, not only the one that set it off; the agent did not hang up."""
    it = rig({"at": {"after_s": 2}, "do": {"down": 5}})
    await it.injector.before_turn(1)
    over, open_ = it.arrives(), it.arrives(background="title")
    it.injector.ended(over, paid=True)
    await it.ask(open_)
    await manual_clock.advance(2)
    later = it.arrives(attempt=2)
    assert [it.injector.dropped(call) for call in (over, open_, later)] == [False, True, False]


async def test_a_refusal_of_our_own_validator_is_late_on_a_slow_link_too(rig: Any, manual_clock: Any):
    """The link slows whatever passes; an agent that hangs up before has not read it."""
    it = rig({"do": {"latency": 2}})
    await it.injector.before_turn(1)
    await it.call()
    wrong = it.arrives(step=2)
    it.injector.refused(wrong)
    await it.ask(wrong, conn=2)
    it.injector.ended(wrong, False)
    await manual_clock.advance(1)
    it.injector.closed(wrong)
    assert it.delivered == [(wrong, PartialDelivery(0, "slowed", headers=False))]
    assert len(it.strikes) == 1


@pytest.mark.parametrize(("at", "headers"), [({"phase": "headers"}, False), ({"byte": 0}, True), ({"byte": 9}, True)])
@pytest.mark.parametrize("do", ["cut", {"stall": "forever"}, {"drip": 1}])
async def test_the_headers_have_arrived_if_they_come_before_the_fault(rig: Any, at: Any, headers: bool, do: Any):
    """Then the agent knows the status, whatever becomes of the body."""
    it = rig({"at": at, "do": do})
    await it.injector.before_turn(1)
    call = it.arrives()
    for stop in await it.ask(call):
        await it.ask(call, at=stop)
    await it.strikes[0].hits()
    it.injector.ended(call, True)
    await it.injector.after_turn(1)
    (_, cut), *_ = it.delivered
    assert cut.headers is headers


async def test_a_page_link_that_closes_drops_no_reply_of_the_model(rig: Any, manual_clock: Any):
    """Each link has connections of its own."""
    it = rig({"link": "tool:web", "at": {"after_s": 2}, "do": "refuse"})
    await it.injector.before_turn(1)
    call = it.arrives()
    await manual_clock.advance(2)
    assert it.strikes and not it.injector.dropped(call)


@pytest.mark.parametrize(("fault", "before"), [({"cut": "fin"}, True), ({"stall": "forever"}, False)])
async def test_a_connection_that_a_cut_or_the_end_of_a_stall_closes_is_dropped(rig: Any, fault: Any, before: bool):
    """The fake may see it close when the fault is healed already; the agent did not hang up."""
    it = rig({"at": {"event": 1}, "do": fault})
    await it.injector.before_turn(1)
    await it.call()
    assert it.injector.dropped(1) is before
    await it.injector.after_turn(1)
    assert it.injector.limits(1) is None and it.injector.dropped(1)


async def test_a_stall_that_the_agent_left_drops_nothing_when_it_is_healed(rig: Any):
    """The agent hung up before."""
    it = rig({"at": {"event": 1}, "do": {"stall": "forever"}})
    await it.injector.before_turn(1)
    await it.call()
    it.injector.closed(1)
    await it.injector.after_turn(1)
    assert not it.injector.dropped(1)
