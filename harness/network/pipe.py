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
from dataclasses import dataclass, field, replace
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
    came: float
    late_s: float
    data: bytes | None  # None: the source has ended
    how: Literal["fin", "rst"] = "fin"

    @property
    def due(self) -> float:
        return self.came + self.late_s


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

    def is_like(self, other: "_Pace") -> bool:
        """Whether both are the same but for their pauses."""
        return replace(other, next=self.next) == self


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
    _paces: list[_Pace] = field(default_factory=list)
    _delay_s: float = 0.0
    _closed: bool = False

    def stop(self, at: int, how: Ending) -> None:
        """Let exactly `at` bytes pass since the connection's first, then stall, FIN or RST."""
        self._stop = _Stop(at, how)

    def pace(self, at: int, every_s: float, size: int, *, in_proportion: bool = False) -> None:
        """From byte `at` on let at most `size` bytes pass every `every_s` seconds; an earlier pace stays on.

        `in_proportion`: the pause after fewer bytes is as much shorter; else each piece has the whole pause behind it.
        """
        self._paces.append(_Pace(at, every_s, size, in_proportion))

    def delay(self, s: float) -> None:
        """Let what comes from now on pass `s` seconds later than it would."""
        self._delay_s += s

    def heal(self, left: Sequence[Callable[["Pipe"], None]] = ()) -> list[Action]:
        """Forget all faults but those that `left` sets again.

        A stall that is over ends with FIN: what came behind it is lost. A pause that has begun lasts if its pace does.
        """
        before = self._paces
        self._forget()
        for arm in left:
            arm(self)
        for pace in self._paces:
            pace.next = max((old.next for old in before if old.is_like(pace)), default=0.0)
        for chunk in self._queue:
            chunk.late_s = min(chunk.late_s, self._delay_s)
        if self.stopped != "stall" or self._closed or self._stop:
            return []
        return [self._close("fin")]

    def _forget(self) -> None:
        self._stop, self._paces, self._delay_s = None, [], 0.0

    def feed(self, data: bytes, now: float) -> None:
        """Bytes came from the source."""
        if self.reading and data:
            self._queue.append(_Chunk(now, self._delay_s, data))

    def end(self, now: float, how: Literal["fin", "rst"] = "fin") -> None:
        """The source has sent its last byte."""
        if self.reading:
            self._queue.append(_Chunk(now, self._delay_s, None, how))

    @property
    def reading(self) -> bool:
        """Whether bytes of the source can still pass."""
        return self.stopped is None and not self._closed

    @property
    def come(self) -> int:
        """Bytes that have come since the connection's first, whether or not they have passed."""
        return self.carried + self.waiting

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
        chunk = self._queue[0]
        if chunk.data is None or len(self._paces) != 1 or self._stop is not None or self.carried < self._paces[0].at:
            return at_s
        pace = self._paces[0]
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
        if not self._paces or head.data is None:
            return head.due
        return max(head.due, *(pace.next for pace in self._paces))

    def _pass(self, chunk: _Chunk, at_s: float) -> list[Action]:
        """Let a chunk pass, or as much of it as the pace allows, which was due at `at_s`."""
        if chunk.data is None:
            return [self._close(chunk.how)]
        data = chunk.data[: self._room()]
        rest = chunk.data[len(data) :]
        if rest:
            self._queue.appendleft(_Chunk(chunk.came, chunk.late_s, rest))
        data, hit = self._limited(data)
        self.carried += len(data)
        for pace in self._paces:
            if self.carried > pace.at:
                pace.next = at_s + pace.pause_s(len(data))
        sent: list[Action] = [Send(data)] if data else []
        return sent + self._ending() if hit else sent

    def _room(self) -> int | None:
        """How many bytes the paces let pass at once; None if there is none."""
        lefts = ((pace.at - self.carried, pace.size) for pace in self._paces)
        return min((before if before > 0 else size for before, size in lefts), default=None)

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
