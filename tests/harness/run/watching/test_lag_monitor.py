"""The watchdog: how late our own loop is."""

import asyncio
from typing import Any

import pytest

from wedgehog.harness.run.watching.cpu_wait import BEAT_S, LagMonitor


async def test_a_loop_that_is_in_time_has_no_lag(manual_clock: Any):
    """However long it runs."""
    async with LagMonitor(manual_clock) as watchdog:
        await manual_clock.advance(3)
    assert watchdog.worst_s == pytest.approx(0, abs=1e-6)


async def test_the_worst_lag_is_kept(manual_clock: Any):
    """A later, smaller one does not hide it."""
    async with LagMonitor(manual_clock) as watchdog:
        await manual_clock.advance(BEAT_S / 2)
        for late_s in (2.0, 0.5):
            manual_clock.s += late_s
            await manual_clock.advance(BEAT_S)
        assert watchdog.worst_s == pytest.approx(2.0, abs=2 * BEAT_S)


async def test_it_leaves_no_task(manual_clock: Any):
    """Its beat ends with it."""
    async with LagMonitor(manual_clock):
        pass
    assert asyncio.all_tasks() == {asyncio.current_task()}
