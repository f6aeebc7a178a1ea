"""The injector: turns, a network that fails, and the end of a run."""

import asyncio
import gc
from typing import Any

import pytest

from wedgehog.harness.network.base import (
    ConnectionGoneError,
    LinkBusyError,
    NetworkError,
)
from wedgehog.harness.record.events.fault import FaultArmed, FaultUnproven
from wedgehog.harness.record.events.run import Note, Trouble


async def test_only_the_faults_of_a_turn_are_armed_with_it(rig: Any):
    """Each is told once, with its place in the plan."""
    it = rig({"do": "cut"}, {"at": {"turn": 2}, "do": "cut"})
    await it.injector.before_turn(1)
    assert [armed.fault for armed in it.history.of(FaultArmed)] == [0]
    await it.injector.before_turn(2)
    assert [armed.fault for armed in it.history.of(FaultArmed)] == [0, 1]


async def test_a_network_that_fails_while_a_fault_is_armed_makes_the_run_an_error(rig: Any, settled: Any):
    """The reply stays held, the run is told to stop, and the trouble is said once."""
    it = rig({"at": {"byte": 5}, "do": "cut"})
    await it.injector.before_turn(1)
    it.link.broken = NetworkError("it died")
    asking = asyncio.create_task(it.call())
    await settled()
    assert it.injector.broken.is_set() and not asking.done()
    it.injector.network_died()
    assert [trouble.what for trouble in it.history.of(Trouble)] == ["the network failed: it died"]
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


async def test_a_network_that_fails_before_a_turn_makes_the_run_an_error_too(rig: Any):
    """Arming a refused connection must not raise into the runner."""
    it = rig({"at": {"phase": "connect"}, "do": "refuse"})
    it.link.broken = NetworkError("it died")
    await it.injector.before_turn(1)
    assert it.injector.broken.is_set()


@pytest.mark.parametrize(
    ("wrong", "is_error"),
    [
        (NetworkError("it died"), True),
        (LinkBusyError("another reply is under way"), False),
        (ConnectionGoneError("it is gone"), False),
    ],
)
async def test_a_network_that_fails_behind_a_client_that_has_gone_is_told_once(
    rig: Any, settled: Any, wrong: NetworkError, is_error: bool
):
    """The run is an error, unless only the client's own connection was missing; no traceback is printed."""
    printed: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: printed.append(context))
    it = rig({"at": {"byte": 5}, "do": "cut"})
    await it.injector.before_turn(1)
    it.link.open.clear()
    asking = asyncio.create_task(it.call())
    await settled()
    asking.cancel()
    await settled()
    it.link.broken = wrong
    it.link.open.set()
    await settled()
    gc.collect()
    assert (printed, it.injector.broken.is_set()) == ([], is_error)


async def test_a_client_that_left_just_before_its_fault_was_armed_is_no_failure_of_the_network(rig: Any):
    """The fake may hear of it a moment later than the network: its reply goes on, and the fault hit nothing."""
    it = rig({"at": {"byte": 5}, "do": "cut"})
    await it.injector.before_turn(1)
    it.link.broken = ConnectionGoneError("no open connection")
    assert list(await it.call()) == []
    assert not it.injector.broken.is_set() and not list(it.history.of(Trouble))
    assert [note.what for note in it.history.of(Note)] == ["cut on llm at step 1 of turn 1: there was nothing to hit"]
    await it.injector.after_turn(1)
    assert not it.fired and not list(it.history.of(FaultUnproven))


async def test_closing_heals_everything_and_leaves_no_task(rig: Any, manual_clock: Any):
    """Timers of a turn that was broken off too."""
    it = rig({"at": {"byte": 5}, "do": {"stall": "forever"}}, {"at": {"after_s": 100}, "do": "abort"})
    await it.injector.before_turn(1)
    await it.call()
    await it.injector.close()
    assert it.strikes[0].healed
    await manual_clock.advance(200)
    assert not it.fired
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_closing_right_after_a_turn_began_leaves_nothing_half_begun(rig: Any):
    """A timer that was never waited for gives no warning about a coroutine that was never awaited."""
    it = rig({"at": {"after_s": 100}, "do": "abort"})
    await it.injector.before_turn(1)
    await it.injector.close()
    gc.collect()
    assert asyncio.all_tasks() == {asyncio.current_task()}
