"""The fake provider's clock, for delays and dates."""

import asyncio
from datetime import UTC, datetime
from typing import Protocol


class ProviderClock(Protocol):
    """A clock for delays and date headers."""

    async def sleep(self, seconds: float) -> None:
        """Wait `seconds`."""

    def wall(self) -> datetime:
        """Return the date and time, aware, in UTC."""


class RealClock:
    """The event loop's time and the system's calendar."""

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running event loop."""
        await asyncio.sleep(seconds)

    def wall(self) -> datetime:
        """Return the system's date and time."""
        return datetime.now(UTC)
