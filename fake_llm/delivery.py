"""Writes a wire image through the gate: exactly up to each stop, in as few writes as delays and stops allow."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Awaitable, Callable, Sequence

from wedgehog.fake_llm.clock import Clock
from wedgehog.fake_llm.image import Image

BEFORE_HEAD = -1


class Delivery:
    """One reply on its way. `head` and `body` count the bytes written so far, whatever ended it."""

    def __init__(
        self,
        image: Image,
        write: Callable[[bytes], None],
        ask: Callable[[int], Awaitable[Sequence[int]]],
        clock: Clock,
    ) -> None:
        """`write` takes bytes at once; `ask` is the gate: it gets a body offset and returns further stops."""
        self.head = 0
        self.body = 0
        self._image = image
        self._write = write
        self._ask = ask
        self._clock = clock
        self._bytes = bytearray(image.body)
        self._stops: list[int] = []
        self._ready = bytearray()
        self._at = 0

    @property
    def tokens(self) -> int:
        """Output tokens generated so far: all of an unpaced reply, of a paced one those that were written."""
        frames = self._image.frames
        arrived = bisect_right(self._image.ends, self.body)
        if not self._image.paced or arrived == len(frames):
            return self._image.tokens
        return frames[arrived - 1].tokens if arrived else 0

    async def run(self) -> None:
        """Write all of it; an endless reply ends by cancellation alone."""
        await self._gate(BEFORE_HEAD)
        self._ready += self._image.head
        start = 0
        for end, frame in zip(self._image.ends, self._image.frames, strict=True):
            if frame.delay_s:
                await self._advance(start)
                await self._pause(frame.delay_s)
            start = end
        await self._advance(len(self._bytes))
        while self._image.endless:
            await self._pause(self._image.endless.delay_s)
            self._bytes += self._image.endless.data
            await self._advance(len(self._bytes))
        self._flush()

    async def _pause(self, delay_s: float) -> None:
        self._flush()
        await self._clock.sleep(delay_s)
        await self._gate(self._at)

    async def _advance(self, end: int) -> None:
        while self._stops and self._stops[0] <= end:
            stop = self._stops.pop(0)
            self._take(stop)
            self._flush()
            await self._gate(stop)
        self._take(end)

    async def _gate(self, at: int) -> None:
        for stop in await self._ask(at):
            if stop > at and stop not in self._stops:
                insort(self._stops, stop)

    def _take(self, end: int) -> None:
        self._ready += self._bytes[self._at : end]
        self._at = max(self._at, end)

    def _flush(self) -> None:
        if self._ready:
            self._write(bytes(self._ready))
            self._ready.clear()
            self.head, self.body = len(self._image.head), self._at
