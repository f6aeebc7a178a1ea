"""Time as the fake needs it: to wait, and to write dates. Any clock with these two methods fits."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Protocol


class ProviderClock(Protocol):
    """What delays and date headers are made of."""

    async def sleep(self, seconds: float) -> None:
        """Let `seconds` pass."""

    def wall(self) -> datetime:
        """Tell the date and time, aware, in UTC."""


class RealClock:
    """The event loop's time and the system's calendar."""

    async def sleep(self, seconds: float) -> None:
        """Sleep on the running event loop."""
        await asyncio.sleep(seconds)

    def wall(self) -> datetime:
        """Tell the system's date and time."""
        return datetime.now(UTC)
