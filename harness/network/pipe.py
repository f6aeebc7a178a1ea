"""One direction of one connection as a machine without sockets or clock: bytes go in, what to send and when comes out.

```
feed(bytes, now) ──▶ │ late by delay │ ──▶ │ held by pace │ ──▶ │ stop at byte n │ ──▶ ready(now) → Send, Close
```

Its rules are those of a Toxiproxy link, so that a client can't tell the two apart:

- a limit hits when its last byte passes, or, if nothing may pass any more, when the next byte comes;
- what came behind a stop is lost; nothing is read any more;
- the end of the source passes behind its last byte, unless the pipe is stalled.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from wedgehog.harness.faults.base import Ending

CATCH_UP_S = 1.0
"""A late pace continues from its due time, by this much at most: else thousands of small delays add up."""


@dataclass(frozen=True, slots=True)
class Send:
    """Forward these bytes now."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Close:
    """Close the other side now."""

    how: Literal["fin", "rst"]


Action = Send | Close


@dataclass(slots=True)
class _Chunk:
    due: float
    data: bytes | None  # None: the source has ended
    how: Literal["fin", "rst"] = "fin"


@dataclass(slots=True)
class _Stop:
    at: int
    how: Ending


@dataclass(slots=True)
class _Pace:
    at: int
    every_s: float
    size: int
    in_proportion: bool = False
    next: float = 0.0

    def pause_s(self, passed: int) -> float:
        """The pause behind so many bytes."""
        return self.every_s * min(1.0, passed / self.size) if self.in_proportion else self.every_s


@dataclass(slots=True)
class Pipe:
    """Bytes on their way in one direction; times are seconds of any one clock.

    >>> pipe = Pipe()
    >>> pipe.stop(3, "fin")
    >>> pipe.feed(b"hello", now=0)
    >>> pipe.ready(now=0)
    [Send(data=b'hel'), Close(how='fin')]
    """

    carried: int = 0
    stopped: Ending | None = None
    held: bool = False
    """Nothing passes for now, and nothing is lost."""
    _queue: deque[_Chunk] = field(default_factory=deque)
    _stop: _Stop | None = None
    _pace: _Pace | None = None
    _delay_s: float = 0.0
    _closed: bool = False

    def stop(self, at: int, how: Ending) -> None:
        """Let exactly `at` bytes pass since the connection's first, then stall, FIN or RST."""
        self._stop = _Stop(at, how)

    def pace(self, at: int, every_s: float, size: int, *, in_proportion: bool = False) -> None:
        """From byte `at` on let at most `size` bytes pass every `every_s` seconds; a pause that has begun lasts.

        `in_proportion`: the pause after fewer bytes is as much shorter; else each piece has the whole pause behind it.
        """
        self._pace = _Pace(at, every_s, size, in_proportion, self._pace.next if self._pace else 0.0)

    def delay(self, s: float) -> None:
        """Let what comes from now on pass `s` seconds later."""
        self._delay_s = s

    def heal(self, left: Sequence[Callable[["Pipe"], None]] = ()) -> list[Action]:
        """Forget all faults but those that `left` sets again.

        A stall that is over ends with FIN: what came behind it is lost. A pause that has begun lasts if its pace does.
        """
        paused_until, delay_s = self._pace.next if self._pace else 0.0, self._delay_s
        self._forget()
        for arm in left:
            arm(self)
        if self._pace:
            self._pace.next = paused_until
        for chunk in self._queue:
            chunk.due -= max(0.0, delay_s - self._delay_s)
        if self.stopped != "stall" or self._closed or self._stop:
            return []
        return [self._close("fin")]

    def _forget(self) -> None:
        self._stop, self._pace, self._delay_s = None, None, 0.0

    def feed(self, data: bytes, now: float) -> None:
        """Bytes came from the source."""
        if self.reading and data:
            self._queue.append(_Chunk(now + self._delay_s, data))

    def end(self, now: float, how: Literal["fin", "rst"] = "fin") -> None:
        """The source has sent its last byte."""
        if self.reading:
            self._queue.append(_Chunk(now + self._delay_s, None, how))

    @property
    def reading(self) -> bool:
        """Whether bytes of the source can still pass."""
        return self.stopped is None and not self._closed

    @property
    def waiting(self) -> int:
        """Bytes that have come and not yet passed."""
        return sum([len(chunk.data or b"") for chunk in self._queue]) if self._queue else 0

    def ready(self, now: float) -> list[Action]:
        """What may pass by now, in order."""
        actions: list[Action] = []
        while self._queue and self.reading and not self.held and (due := self._due()) <= now:
            actions += self._pass(self._queue.popleft(), max(due, now - CATCH_UP_S))
        return actions

    def next_at(self) -> float | None:
        """When to ask `ready` again; None if only new bytes can change anything."""
        return self._due() if self._queue and self.reading and not self.held else None

    def skip(self, until_s: float) -> float:
        """Let everything pass that passes until then, as `ready` does; return when the last of it did.

        >>> pipe = Pipe()
        >>> pipe.pace(0, every_s=0.5, size=1)
        >>> pipe.feed(b"hello", now=0)
        >>> pipe.skip(until_s=1.2), pipe.carried
        (1.0, 3)
        """
        last_s = 0.0
        while (at_s := self.next_at()) is not None and at_s <= until_s:
            last_s = self._skip_paced(at_s, until_s)
            self.ready(last_s)
        return last_s

    def _skip_paced(self, at_s: float, until_s: float) -> float:
        """Let the pieces of the first chunk pass but the last that passes until then; return when that one is due."""
        chunk, pace = self._queue[0], self._pace
        if chunk.data is None or pace is None or self._stop is not None or self.carried < pace.at:
            return at_s
        pieces, most = 0, (len(chunk.data) - 1) // pace.size
        while pieces < most and at_s + pace.every_s <= until_s:
            at_s += pace.every_s  # not multiplied: the sums are those of a pipe that is asked piece by piece
            pieces += 1
        self.carried += pieces * pace.size
        chunk.data = chunk.data[pieces * pace.size :]
        pace.next = at_s
        return at_s

    def _due(self) -> float:
        head = self._queue[0]
        paced = self._pace is not None and self.carried >= self._pace.at and head.data is not None
        return max(head.due, self._pace.next) if paced and self._pace else head.due

    def _pass(self, chunk: _Chunk, at_s: float) -> list[Action]:
        """Let a chunk pass, or as much of it as the pace allows, which was due at `at_s`."""
        if chunk.data is None:
            return [self._close(chunk.how)]
        data = chunk.data[: self._room()]
        rest = chunk.data[len(data) :]
        if rest:
            self._queue.appendleft(_Chunk(chunk.due, rest))
        data, hit = self._limited(data)
        self.carried += len(data)
        if self._pace and self.carried > self._pace.at:
            self._pace.next = at_s + self._pace.pause_s(len(data))
        sent: list[Action] = [Send(data)] if data else []
        return sent + self._ending() if hit else sent

    def _room(self) -> int | None:
        """How many bytes the pace lets pass at once; None if it doesn't care."""
        if self._pace is None:
            return None
        before = self._pace.at - self.carried
        return before if before > 0 else self._pace.size

    def _limited(self, data: bytes) -> tuple[bytes, bool]:
        if self._stop is None:
            return data, False
        left = max(0, self._stop.at - self.carried)
        return data[:left], len(data) >= left

    def _ending(self) -> list[Action]:
        how: Ending = self._stop.how if self._stop else "fin"
        self.stopped = how
        self._queue.clear()
        return [] if how == "stall" else [self._close(how)]

    def _close(self, how: Literal["fin", "rst"]) -> Close:
        self._closed = True
        self._queue.clear()
        return Close(how)
