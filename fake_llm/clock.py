"""The fake provider's clock, for delays and dates."""

import asyncio
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache
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


@lru_cache(maxsize=1024)
def http_date(at_s: int) -> str:
    """Return the date and time of a header, in UTC.

    >>> http_date(0)
    'Thu, 01 Jan 1970 00:00:00 GMT'
    """
    return format_datetime(datetime.fromtimestamp(at_s, UTC), usegmt=True)
