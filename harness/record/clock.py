"""Time as an argument: every part of a run reads the same clock, so that a virtual one can take its place."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What a run may know of time."""

    def now(self) -> float:
        """Seconds since this clock was made; monotonic."""
        ...

    def wall(self) -> datetime:
        """The calendar's date and time, aware, in UTC."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Let `seconds` of this clock pass."""
        ...


class WallClock:
    """Real time: monotonic for durations, the system's calendar for dates."""

    def __init__(self) -> None:
        """Zero is now."""
        self._zero = time.monotonic()

    def now(self) -> float:
        """Seconds since this clock was made."""
        return time.monotonic() - self._zero

    def wall(self) -> datetime:
        """The system's date and time in UTC."""
        return datetime.now(UTC)

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running event loop."""
        await asyncio.sleep(seconds)
