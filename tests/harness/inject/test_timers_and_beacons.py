"""The injector: faults that wait for a time, or for a tool."""

from typing import Any

import pytest

from wedgehog.harness.record.events.fault import FaultHealed
from wedgehog.harness.record.events.run import RunStarted


async def test_an_abort_is_demanded_when_its_time_has_come(rig: Any, manual_clock: Any):
    """Seconds count from the turn's start, and the demand says how long the front end waits by its own rule."""
    it = rig({"link": "channel", "at": {"after_s": 8}, "do": "give_up"})
    await it.injector.before_turn(1)
    await manual_clock.advance(7.9)
    assert it.injector.demands.empty() and not it.fired
    await manual_clock.advance(0.2)
    assert it.injector.demands.get_nowait() == ("give_up", 8)
    assert it.fired[0].proof == "the harness did it"


async def test_a_front_end_that_leaves_some_time_after_an_event_waits_by_no_clock(rig: Any, manual_clock: Any):
    """It would have left in the same tool call on any machine: the delay is not the time that it waits."""
    it = rig({"link": "channel", "at": {"tool": 1, "when": "started", "after_s": 0.5}, "do": "give_up"})
    it.injector.beacon("1.1.1", "started")
    await manual_clock.advance(0.6)
    assert it.injector.demands.get_nowait() == ("give_up", None)


async def test_a_timer_that_its_turn_outran_never_fires(rig: Any, manual_clock: Any):
    """The turn was over before."""
    it = rig({"at": {"after_s": 8}, "do": "abort"})
    await it.injector.before_turn(1)
    await manual_clock.advance(5)
    await it.injector.after_turn(1)
    await manual_clock.advance(10)
    assert it.injector.demands.empty() and not it.fired


async def test_a_demand_that_was_not_obeyed_in_its_turn_does_not_reach_the_next(rig: Any, manual_clock: Any):
    """The agent ended in the same moment: the recovery message must not be aborted for it."""
    it = rig({"at": {"after_s": 8}, "do": "abort"})
    await it.injector.before_turn(1)
    await manual_clock.advance(9)
    await it.injector.after_turn(1)
    await it.injector.before_turn(2)
    assert it.injector.demands.empty()


async def test_a_link_goes_down_for_its_time_and_comes_back_in_mid_turn(rig: Any, manual_clock: Any):
    """`down: 5` at second 2 is healed at second 7."""
    it = rig({"at": {"after_s": 2}, "do": {"down": 5}})
    await it.injector.before_turn(1)
    assert not it.strikes
    await manual_clock.advance(2)
    await it.strikes[0].hits()
    await manual_clock.advance(4.9)
    assert not it.strikes[0].healed
    await manual_clock.advance(0.2)
    assert it.strikes[0].healed
    assert [event.fault for event in it.history.of(FaultHealed)] == [0]


@pytest.mark.parametrize(
    ("at", "back_s"), [({"phase": "connect"}, 11.0), ({"step": 2, "phase": "connect"}, 3.0), ({"after_s": 2}, 3.0)]
)
async def test_the_time_in_which_a_link_is_down_begins_when_the_agent_would_ask(
    rig: Any, manual_clock: Any, at: dict[str, Any], back_s: float
):
    """An agent that takes 8 s to start would never meet 3 s at the turn's beginning; later it has started."""
    it = rig({"at": at, "do": {"down": 3}})
    it.history.add(RunStarted(scenario="s", agent="a", network="n", time_scale=1, started="", start_up_s=8.0))
    await it.injector.before_turn(1)
    call = it.arrives()
    if "step" in at:
        await it.ask(call)
        it.injector.ended(call, paid=True)
    await manual_clock.advance(2.1)
    await it.strikes[0].hits()
    await manual_clock.advance(back_s - 0.1)
    assert not it.strikes[0].healed
    await manual_clock.advance(0.2)
    assert it.strikes[0].healed


async def test_heal_after_s_counts_from_the_proof(rig: Any, manual_clock: Any):
    """`heal: {after_s: 30}` in the middle of a turn."""
    it = rig({"at": {"byte": 5}, "do": {"stall": "forever"}, "heal": {"after_s": 30}})
    await it.injector.before_turn(1)
    await it.call()
    await manual_clock.advance(50)
    assert not it.strikes[0].healed, "nothing to heal before it has hit"
    await it.strikes[0].hits()
    await manual_clock.advance(29)
    assert not it.strikes[0].healed
    await manual_clock.advance(2)
    assert it.strikes[0].healed


@pytest.mark.parametrize(
    ("token", "phase", "meets"),
    [
        ("1.1.1", "started", True),
        ("1.1.1", "done", False),
        ("1.1.2", "started", False),
        ("1.2.1", "started", False),
        ("2.1.1", "started", False),
    ],
)
async def test_a_beacon_sets_off_the_fault_of_exactly_its_tool_call(
    rig: Any, settled: Any, token: str, phase: Any, meets: bool
):
    """Turn, step and call, and whether the command has started or is done."""
    it = rig({"at": {"tool": 1}, "do": "abort"})
    await it.injector.before_turn(1)
    await it.call()
    assert not it.strikes, "a trigger on a tool is none on the reply"
    it.injector.beacon(token, phase)
    await settled()
    assert it.injector.demands.empty() is not meets


async def test_a_beacon_sets_its_fault_off_once(rig: Any, settled: Any):
    """A command that is run again leaves the same trace."""
    it = rig({"at": {"tool": 1, "when": "done"}, "do": "abort"})
    await it.injector.before_turn(1)
    it.injector.beacon("1.1.1", "done")
    it.injector.beacon("1.1.1", "done")
    await settled()
    assert it.injector.demands.qsize() == 1 and len(it.fired) == 1
