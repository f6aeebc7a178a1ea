"""The clock of a run. All parts get it as an argument, so that tests can pass a virtual one."""

import asyncio
import time
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, Protocol


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


async def first_of(*waits: Coroutine[Any, Any, Any] | asyncio.Future[Any], timeout_s: float | None = None) -> bool:
    """Wait until one is done, and cancel the coroutines among the others; return whether one is done in time."""
    tasks = [asyncio.ensure_future(it) for it in waits]
    try:
        done, _ = await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task, it in zip(tasks, waits, strict=True):
            if task is not it:
                task.cancel()
    return bool(done)
