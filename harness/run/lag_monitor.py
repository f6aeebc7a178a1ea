"""Our own lag: how late the event loop wakes up. What we are late is no fault of the agent's."""

import asyncio
import contextlib
from typing import Self

from wedgehog.harness.record.clock import Clock

BEAT_S = 0.05


class LagMonitor:
    """Measures the worst lag while it is open. An async context manager."""

    def __init__(self, clock: Clock) -> None:
        """Nothing is measured yet."""
        self._clock = clock
        self.worst_s = 0.0

    async def __aenter__(self) -> Self:
        """Start to beat."""
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop."""
        self._beating.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._beating

    async def _beat(self) -> None:
        while True:
            due = self._clock.now() + BEAT_S
            await self._clock.sleep(BEAT_S)
            self.worst_s = max(self.worst_s, self._clock.now() - due)
