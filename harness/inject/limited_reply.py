"""Replies that a fault limits, and how many of their bytes can have arrived."""

import math
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from wedgehog.fake_llm.observer import Point
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.network.pipe import Pipe

LimitKind = Literal["stalled", "cut", "slowed"]
LOOKS = 16
"""How many points of a slow reply are looked at for its longest silence."""


@dataclass(frozen=True, slots=True)
class PartialDelivery:
    """A reply was let through up to body byte `at` only."""

    at: int
    how: LimitKind
    headers: bool = True
    """Whether status line and headers were certainly let through; of what is only slow, only an estimate is known."""
    quiet_s: float | None = field(default=None, compare=False)
    """Of what is only slow: the longest time in which no byte came, at most."""


@dataclass
class Written:
    """When the fake provider wrote which part of a reply of `head` and `body` bytes (-1: endless).

    The parts are played through a Pipe, which has the fault on it from part `first` on. A network may be slower than
    that, and never faster.
    """

    head: int = 0
    body: int = 0
    parts: list[tuple[float, int]] = field(default_factory=list)

    def goes_on(self, now: float, point: Point) -> None:
        """The bytes from this point to the next one are written now."""
        self.head, self.body = point.head, point.body
        self.parts.append((now, point.head + point.at if point.at >= 0 else 0))

    def played(self, fault: WireFault, first: int, until_s: float = math.inf) -> tuple[int, float]:
        """Body bytes that can have arrived until then, and when the last one of them did."""
        if not self.parts:
            return 0, 0.0
        pipe, last_s, held = Pipe(), 0.0, 0
        whole = max(self.head + self.body, self.parts[-1][1])
        ends = (*(begin for _, begin in self.parts[1:]), whole)
        for number, ((at_s, begin), end) in enumerate(zip(self.parts, ends, strict=True)):
            pipe.skip(min(at_s, until_s))
            if number == first:
                fault.on_pipe(pipe, pipe.carried)
            held += end - begin
            if number + 1 != first and number + 1 < len(self.parts) and self.parts[number + 1][0] == at_s:
                continue  # a kernel joins what is written at one time
            pipe.feed(bytes(held), at_s)
            held, last_s = 0, at_s
        last_s = max(last_s, pipe.skip(until_s))
        return max(0, pipe.carried - self.head), last_s

    def quiet_s(self, fault: WireFault, first: int, until_s: float) -> float | None:
        """The longest time until then in which no body byte came, at most; None if nothing was written."""
        if not self.parts:
            return None
        step_s = (until_s - self.parts[0][0]) / LOOKS
        counts = [self.played(fault, first, until_s - step_s * (LOOKS - look))[0] for look in range(1, LOOKS + 1)]
        longest = max(len(list(same)) for _, same in groupby([0, *counts]))
        return min(longest + 1, LOOKS) * step_s
