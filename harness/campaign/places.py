"""How many runs of a campaign are played at once: a fixed number, and more while the processors have time for them.

Most runs wait: for a time limit, for silence, for an agent that starts. So one run for each processor leaves most of
the processors' time unused. A further run begins only where the runs that are played hardly wait for a processor, and
the next one after it has shown what it needs.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

LOOK_EVERY_S = 0.2
SETTLES_S = 1.0
"""So long a run is observed before a further one begins beside it: starting takes the most processor time."""
LACKING_SHARE = 0.1
"""Where runs wait for a processor for this share of the time, no further one begins."""


class Places:
    """Runs begin here, in the order in which they ask."""

    def __init__(
        self,
        sure: int,
        most: int = 0,
        waiting: Callable[[], float] = lambda: 0.0,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`sure` runs are played at once, and up to `most` while `waiting` (a share of the time, 0 to 1) is small."""
        self._sure, self._most = max(1, sure), most
        self._waiting, self._now = waiting, now
        self._playing, self._began_s = 0, now()
        self._door = asyncio.Lock()
        self._ended = asyncio.Event()

    @contextlib.asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """A place for one run, as soon as there is one."""
        async with self._door:
            while not self._has_room():
                await self._look_again()
            self._playing, self._began_s = self._playing + 1, self._now()
        try:
            yield
        finally:
            self._playing -= 1
            self._ended.set()

    def _has_room(self) -> bool:
        if self._playing < self._sure:
            return True
        settled = self._now() - self._began_s >= SETTLES_S
        return self._playing < self._most and settled and self._waiting() < LACKING_SHARE

    async def _look_again(self) -> None:
        """Wait until a run has ended, or for a moment where a further one may begin beside those that are played."""
        self._ended.clear()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), LOOK_EVERY_S if self._playing < self._most else None)
