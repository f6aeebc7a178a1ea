"""The injector: faults that are armed before a request is made."""

import asyncio
from typing import Any

import pytest

from tests.harness.inject.rig import BODY
from wedgehog.harness.inject.limited_reply import PartialDelivery
from wedgehog.harness.network.base import (
    Upstream,
    WholeLink,
)


async def test_a_refused_connection_is_armed_before_the_turn_and_keeps_requests_away(rig: Any, settled: Any):
    """It counts as fired when our own probe was refused; healing opens the port again."""
    it = rig({"at": {"phase": "connect"}, "do": "refuse"})
    await it.injector.before_turn(1)
    assert it.strikes[0].spot == WholeLink()
    assert it.injector.keeps_requests_away
    await it.strikes[0].hits("our own connect was refused")
    assert (it.fired[0].call, it.fired[0].turn) == (None, 1)
    await it.injector.after_turn(1)
    await settled()
    assert it.strikes[0].healed and not it.injector.keeps_requests_away


@pytest.mark.parametrize(("paid", "armed"), [(True, 1), (False, 0)])
async def test_a_connection_is_refused_for_step_two_once_the_reply_of_step_one_has_arrived(
    rig: Any, manual_clock: Any, paid: bool, armed: int
):
    """Not before its bytes have crossed, and not after a reply that was itself an error."""
    it = rig({"at": {"step": 2, "phase": "connect"}, "do": "refuse"})
    await it.injector.before_turn(1)
    call = it.arrives(step=1)
    await it.ask(call)
    it.injector.ended(call, paid)
    assert not it.strikes
    await manual_clock.advance(0.1)
    assert len(it.strikes) == armed


async def test_an_upload_is_stalled_by_arming_while_the_reply_before_it_holds_its_last_byte(rig: Any):
    """The agent cannot send its next request before it has the whole reply, and then the link is ready."""
    it = rig({"at": {"step": 2, "phase": "request", "byte": 300}, "do": {"stall": "forever"}})
    await it.injector.before_turn(1)
    call = it.arrives(step=1)
    assert list(await it.ask(call)) == [BODY - 1]
    assert not it.strikes
    await it.ask(call, at=BODY - 1)
    assert it.strikes[0].spot == Upstream(300)
    assert it.injector.closes_after(call), "the next request must come on a fresh connection"


async def test_an_upload_of_the_first_step_is_armed_before_the_turn(rig: Any):
    """And the reply of the turn before it closes its connection."""
    it = rig({"at": {"turn": 2, "phase": "request"}, "do": "cut"})
    await it.injector.before_turn(1)
    assert not it.strikes
    assert it.injector.closes_after(it.arrives(turn=1, step=3))
    await it.injector.after_turn(1)
    await it.injector.before_turn(2)
    assert it.strikes[0].spot == Upstream(0)


async def test_a_reply_that_was_cut_while_it_was_still_being_written_ends_as_soon_as_that_is_noticed(rig: Any):
    """A paced reply: the proof comes before the fake's own end of it, and not with the end of the turn."""
    it = rig({"at": {"event": 1}, "do": "cut"})
    await it.injector.before_turn(1)
    await it.call()
    await it.strikes[0].hits()
    it.delivered.clear()
    it.injector.ended(1, paid=True)
    assert it.delivered == [(1, PartialDelivery(50, "cut"))]


@pytest.mark.parametrize(
    "words", [{"at": {"phase": "request"}, "do": "cut"}, {"at": {"phase": "connect"}, "do": "refuse"}]
)
async def test_a_request_that_never_arrived_has_no_number(rig: Any, words: dict[str, Any]):
    """It is the next one, and a title may come before the conversation."""
    it = rig(words)
    await it.injector.before_turn(1)
    await it.strikes[0].hits()
    assert (it.fired[0].turn, it.fired[0].step, it.fired[0].attempt, it.fired[0].call) == (1, None, None, None)


async def test_a_fault_on_every_upload_rests_when_it_is_healed(rig: Any, settled: Any):
    """`times: always` arms once more after each proof, and never after the end."""
    it = rig({"at": {"phase": "request", "byte": 9}, "do": "cut", "times": "always"})
    await it.injector.before_turn(1)
    for count in range(3):
        await it.strikes[count].hits()
    await it.injector.after_turn(1)
    await settled()
    assert len(it.strikes) == 4 and all(strike.healed for strike in it.strikes)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_fault_on_uploads_strikes_as_many_requests_as_it_says(rig: Any):
    """Each is armed when the one before has hit."""
    it = rig({"at": {"phase": "request", "byte": 9}, "do": "cut", "times": 2})
    await it.injector.before_turn(1)
    await it.strikes[0].hits()
    assert len(it.strikes) == 2
    await it.strikes[1].hits()
    assert (len(it.strikes), len(it.fired)) == (2, 2)


async def test_closes_after_is_said_of_no_other_reply(rig: Any):
    """Keep-alive is part of what agents live with."""
    it = rig({"at": {"step": 3, "phase": "request"}, "do": "cut"})
    await it.injector.before_turn(1)
    assert [it.injector.closes_after(it.arrives(step=step)) for step in (1, 2, 3)] == [False, True, False]
    assert it.injector.closes_after(99) is False
