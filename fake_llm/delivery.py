"""Writes a compiled reply through the gate: exactly up to each stop, in as few writes as possible."""

from bisect import bisect_right, insort
from collections.abc import Awaitable, Callable, Sequence

from wedgehog.fake_llm.clock import ProviderClock
from wedgehog.fake_llm.observer import ARRIVED, BEFORE_HEAD
from wedgehog.fake_llm.wire_reply import WireReply


class Delivery:
    """The writing of one reply. `head` and `body` count the bytes written so far."""

    def __init__(
        self,
        wire_reply: WireReply,
        write: Callable[[bytes], None],
        ask: Callable[[int], Awaitable[Sequence[int]]] | None,
        clock: ProviderClock,
    ) -> None:
        """`write` sends bytes at once; `ask` is the gate, if any: it gets a body offset and returns stops."""
        self.head = 0
        self.body = 0
        self._reply = wire_reply
        self._write = write
        self._ask = ask
        self._clock = clock
        self._stops: list[int] = []
        self._at = 0

    @property
    def tokens(self) -> int:
        """Output tokens generated so far: all of an unpaced reply, only the written ones of a paced reply."""
        if not self._reply.paced:
            return self._reply.tokens
        marks = self._reply.told.marks
        arrived = bisect_right(marks, self.body, key=lambda mark: mark.end)
        return marks[arrived - 1].tokens if arrived else 0

    async def run(self, delay_s: float = 0) -> None:
        """Write the reply after `delay_s`; an endless reply ends only by cancellation."""
        if self._ask is None and not delay_s and not self._reply.paced:
            self._at = self._reply.size
            self._flush()
            return
        if delay_s:
            await self._gate(ARRIVED)
            await self._clock.sleep(delay_s)
        await self._gate(BEFORE_HEAD)
        for start, pause_s in self._reply.told.pauses:
            await self._advance(start)
            await self._pause(pause_s)
        await self._advance(self._reply.size)
        endless = self._reply.told.endless
        while endless:
            await self._pause(endless.delay_s)
            await self._advance(self._at + len(endless.data))
        self._flush()

    async def _pause(self, delay_s: float) -> None:
        self._flush()
        await self._clock.sleep(delay_s)
        await self._gate(self._at)

    async def _advance(self, end: int) -> None:
        while self._stops and self._stops[0] <= end:
            self._at = max(self._at, self._stops.pop(0))
            self._flush()
            await self._gate(self._at)
        self._at = max(self._at, end)

    async def _gate(self, at: int) -> None:
        for stop in await self._ask(at) if self._ask else ():
            if stop > at and stop not in self._stops:
                insort(self._stops, stop)

    def _flush(self) -> None:
        """Write the head if it is unwritten, and the body up to the current offset."""
        if self.head and self.body == self._at:
            return
        # The body is built for each write: a held reply keeps none of its bytes in memory.
        data = b"" if self.head else self._reply.head
        data += self._between(self.body, self._at)
        self.head, self.body = len(self._reply.head), self._at
        self._write(data)

    def _between(self, start: int, end: int) -> bytes:
        size, endless = self._reply.size, self._reply.told.endless
        told = self._reply.body[start:end] if start < size else b""
        if endless is None or end <= size:
            return told
        ping, first = endless.data, max(start, size) - size
        return told + (ping * (1 + (end - size) // len(ping)))[first : end - size]
