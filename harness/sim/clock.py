"""The clock of a run in virtual time."""

import asyncio
from datetime import UTC, datetime, timedelta

from wedgehog.harness.sim.virtual_time import START_S

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""The virtual date and time at the start."""


class SimClock:
    """The virtual time of the running loop; its calendar begins at `EPOCH`."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._zero = self._loop.time()

    def now(self) -> float:
        """Virtual seconds since this clock was made, rounded to nanoseconds."""
        return round(self._loop.time() - self._zero, 9)

    def wall(self) -> datetime:
        """Virtual date and time, UTC."""
        return EPOCH + timedelta(seconds=self._loop.time() - START_S)

    async def sleep(self, seconds: float) -> None:
        """Sleep in virtual time."""
        await asyncio.sleep(seconds)
