"""A run that takes long mostly waits: another one is played beside it, where the machine has time for that."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

from wedgehog.harness.record.clock import Clock

LONG_S = 10.0
"""A run that takes longer than this is a long one."""
LATE = 1.1
"""A machine on which our own timers take this many times as long is busy."""
BESIDE = 2
"""The most runs that are played beside long ones, for each job."""


@dataclass
class LongRuns:
    """Counts the long runs of a search, and its workers that began beside them."""

    clock: Clock
    most: int = 0
    """So many runs are played beside long ones at most."""
    begin: Callable[[], object] = lambda: None
    """Begins one more worker."""
    _beside: int = 0
    _too_many: int = 0
    _second_tries: int = 0

    def one_too_many(self) -> bool:
        """Whether a long run has ended, so that the worker that asks has to end too."""
        ends = self._too_many > 0
        self._too_many -= ends
        return ends

    @contextmanager
    def second_try(self) -> Iterator[None]:
        """A failure is played again: meanwhile no more runs begin, because a busy machine can hide it."""
        self._second_tries += 1
        try:
            yield
        finally:
            self._second_tries -= 1

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Let another run begin once this one takes long; when it is over, one worker is too many."""
        beside = asyncio.create_task(self._one_beside())
        try:
            yield
        finally:
            if not beside.cancel() and beside.result():
                self._beside -= 1
                self._too_many += 1

    async def _one_beside(self) -> bool:
        """Wait until this run is long and the machine is idle; whether another one began then."""
        while not await self._idle():
            pass
        if self._beside >= self.most:
            return False
        self._beside += 1
        self.begin()
        return True

    async def _idle(self) -> bool:
        """Wait for LONG_S; whether our own timers were in time meanwhile, and no failure is played again."""
        began_s = self.clock.now()
        for _ in range(int(LONG_S)):
            await self.clock.sleep(1.0)
        return self.clock.now() - began_s < LATE * LONG_S and not self._second_tries
