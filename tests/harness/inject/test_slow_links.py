"""The injector: links that are slow, and replies that are late."""

import asyncio
from typing import Any

import pytest

from wedgehog.harness.inject.limited_reply import PartialDelivery


async def test_every_reply_on_a_slow_link_is_late_though_only_the_first_was_struck(rig: Any, manual_clock: Any):
    """The second attempt hangs up too soon, the third waits: it is whole when its last byte can have arrived."""
    it = rig({"do": {"latency": 2}})
    await it.injector.before_turn(1)
    for call in (1, 2, 3):
        it.arrives(attempt=call)
        for stop in (-1, *([-1] if call == 1 else [])):
            await it.ask(call, at=stop, conn=call)
        it.injector.ended(call, True)
        assert it.injector.limits(call) == "slowed"
    await manual_clock.advance(1.9)
    it.injector.closed(2)
    assert it.delivered == [(2, PartialDelivery(0, "slowed", headers=False))]
    await manual_clock.advance(0.2)
    assert it.delivered[1:] == [(1, None), (3, None)]
    assert len(it.strikes) == 1


async def test_an_agent_that_leaves_a_slow_link_as_the_last_byte_arrives_has_the_whole_reply(
    rig: Any, manual_clock: Any
):
    """Its close is told some milliseconds before or after that moment; it must not count as half a reply."""
    it = rig({"do": {"latency": 2}})
    await it.injector.before_turn(1)
    call = it.arrives()
    for _ in range(2):
        await it.ask(call)
    it.injector.ended(call, True)
    await manual_clock.advance(1.99)
    it.injector.closed(call)
    assert it.delivered == [(call, None)]


async def test_a_fault_on_every_attempt_slows_its_link_once(rig: Any, settled: Any):
    """Delays of one fault do not add up; each attempt has its own proof."""
    it = rig({"do": {"latency": 60}, "times": "always"})
    await it.injector.before_turn(1)
    for attempt in (1, 2, 3):
        await it.call(attempt=attempt, conn=attempt)
    assert len(it.strikes) == 1
    await it.strikes[0].hits()
    await settled()
    assert [event.call for event in it.fired] == [1, 2, 3]
    await it.injector.after_turn(1)
    assert it.strikes[0].healed


async def test_a_slow_link_delays_the_first_bytes_of_a_second_attempt_too(rig: Any, manual_clock: Any):
    """The trigger names a byte; only in the first attempt have the bytes before it arrived."""
    it = rig({"at": {"byte": 120}, "do": {"latency": 60}, "times": "always"})
    await it.injector.before_turn(1)
    for attempt in (1, 2):
        call = it.arrives(attempt=attempt)
        assert list(await it.ask(call, conn=attempt)) == [120]
        await it.ask(call, at=120, conn=attempt)
        it.injector.ended(call, True)
        await manual_clock.advance(1)
        it.injector.closed(call)
    assert it.delivered == [(1, PartialDelivery(120, "slowed")), (2, PartialDelivery(0, "slowed", headers=False))]


async def test_an_agent_that_reads_a_short_reply_on_a_narrow_link_and_closes_has_all_of_it(rig: Any, manual_clock: Any):
    """The fault sticks to the link, and the reply is written in two parts: 300 bytes at 1.67 MB/s."""
    it = rig({"at": {"byte": 1}, "do": {"bandwidth": 1670}, "times": "always", "sticks_to": "link"})
    await it.injector.before_turn(1)
    for call in (1, 2):
        it.arrives(step=call)
        assert list(await it.ask(call, conn=call)) == [1]
        await manual_clock.advance(0.004)
        await it.ask(call, at=1, conn=call)
        it.injector.ended(call, True)
        await manual_clock.advance(0.07)
        it.injector.closed(call)
    assert dict(it.delivered) == {1: None, 2: None}


async def test_an_agent_that_waits_until_a_slow_link_is_healed_gets_the_whole_reply(rig: Any, manual_clock: Any):
    """Healed in its turn it lets pass what was late; what comes after the turn is too late for it."""
    for heals, cut in ((3, None), (9, PartialDelivery(0, "slowed", headers=False))):
        it = rig({"do": {"latency": 60}, "heal": {"after_s": heals}})
        await it.injector.before_turn(1)
        call = it.arrives()
        await it.ask(call)
        it.injector.ended(call, True)
        await it.strikes[0].hits()
        await manual_clock.advance(5)
        await it.injector.after_turn(1)
        assert it.delivered == [(call, cut)]


async def test_a_reply_that_is_under_way_when_its_link_becomes_slow_is_late_from_there_on(rig: Any, manual_clock: Any):
    """What was written before has arrived."""
    it = rig({"at": {"after_s": 3}, "do": {"latency": 60}})
    await it.injector.before_turn(1)
    call = it.arrives()
    await it.ask(call)
    await manual_clock.advance(4)
    await it.ask(call, at=120)
    await manual_clock.advance(5)
    it.injector.closed(call)
    assert it.delivered == [(call, PartialDelivery(120, "slowed"))]


@pytest.mark.parametrize(("seconds", "at"), [(0.4, 51), (0.6, 52), (2.0, 55)])
async def test_a_drip_has_let_through_what_its_time_allowed(rig: Any, manual_clock: Any, seconds: float, at: int):
    """One byte every half second, from its trigger until the agent hung up."""
    it = rig({"at": {"event": 1}, "do": {"drip": 0.5}})
    await it.injector.before_turn(1)
    call = it.arrives()
    await it.ask(call)
    await it.ask(call, at=50)
    assert it.injector.limits(call) == "slowed"
    await manual_clock.advance(seconds)
    it.injector.closed(call)
    assert it.delivered == [(call, PartialDelivery(at, "slowed"))]
    assert it.injector.limits(call) is None


async def test_two_calls_at_the_same_time_make_their_link_slow_once(rig: Any, settled: Any):
    """One fault on two requests is no delay of twice its time."""
    it = rig({"do": {"latency": 2}, "times": "always"})
    await it.injector.before_turn(1)
    it.link.open.clear()
    asking = [asyncio.create_task(it.call(conn=conn)) for conn in (1, 2)]
    await settled()
    it.link.open.set()
    await settled()
    assert len(it.strikes) == 1
    for one in asking:
        one.cancel()
