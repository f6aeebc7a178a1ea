"""The clock of a run. All parts get it as an argument, so that tests can pass a virtual one."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The time of a run."""

    def now(self) -> float:
        """Monotonic seconds since the clock was made."""

    def wall(self) -> datetime:
        """Date and time, timezone-aware, UTC."""

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds` of this clock."""


class WallClock:
    """Real time."""

    def __init__(self) -> None:
        """The clock starts at 0."""
        self._zero = time.monotonic()

    def now(self) -> float:
        """Seconds since this clock was made."""
        return time.monotonic() - self._zero

    def wall(self) -> datetime:
        """Date and time of the system, UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running event loop."""
        await asyncio.sleep(seconds)
