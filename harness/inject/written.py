"""When the fake provider wrote which bytes of a reply, and hence how many of them can have passed a slow link."""

import math
from dataclasses import dataclass, field

from wedgehog.fake_llm.observer import Point
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.network.pipe import Pipe


@dataclass
class Written:
    """A reply of `head` and `body` bytes (-1: endless): each part was written at a time, from a byte on.

    Its parts are played through a Pipe, which has the fault on it from part `first` on. A network may be slower than
    that, and never faster.
    """

    head: int = 0
    body: int = 0
    parts: list[tuple[float, int]] = field(default_factory=list)

    def goes_on(self, now: float, point: Point) -> None:
        """What is behind this point is written now, as far as the next one."""
        self.head, self.body = point.head, point.body
        self.parts.append((now, point.head + point.at if point.at >= 0 else 0))

    def arrived(self, fault: WireFault, first: int, now: float) -> int:
        """Body bytes that can have arrived by now."""
        return self._played(fault, first, now)[0]

    def whole_s(self, fault: WireFault, first: int) -> float:
        """When all that was written can have arrived."""
        return self._played(fault, first, math.inf)[1]

    def _played(self, fault: WireFault, first: int, until_s: float) -> tuple[int, float]:
        pipe, last_s = Pipe(), 0.0
        ends = (*(begin for _, begin in self.parts[1:]), self._end)
        for number, ((at_s, begin), end) in enumerate(zip(self.parts, ends, strict=True)):
            _play(pipe, min(at_s, until_s))
            if number == first:
                fault.on_pipe(pipe, pipe.carried)
            pipe.feed(bytes(end - begin), at_s)
            last_s = at_s
        last_s = max(last_s, _play(pipe, until_s))
        return max(0, pipe.carried - self.head), last_s

    @property
    def _end(self) -> int:
        return max(self.head + self.body, self.parts[-1][1]) if self.parts else 0


def _play(pipe: Pipe, until_s: float) -> float:
    """Let pass what passes until then; when the last of it did."""
    last_s = 0.0
    while (at_s := pipe.next_at()) is not None and at_s <= until_s:
        pipe.ready(at_s)
        last_s = at_s
    return last_s
