"""
fake ─────┤ data: {"delta":"Hel"} ├─────── s seconds ───────▶ agent        `latency`: every byte, late but in order
fake ─────┤ 40 KB at once ├──▶  4 KB · · 4 KB · · 4 KB · ·  ──▶ agent     `bandwidth`: thousand bytes a second
fake ─────┤ data: {"delta":"Hello"} ├──▶  d · · a · · t · · a · · ──▶ agent     `drip`: one byte per `every_s`
fake ─────┤ data: {"delta":"Hello"} ├──▶  da|ta: |{"de|lta|":"H|ell|o"} ──▶ agent     `slicer`: many small pieces
"""

import math
from dataclasses import replace
from typing import Annotated, ClassVar, Self

from pydantic import Field

from wedgehog.harness.faults.base import FaultPipe, Toxic, WireFault, fault
from wedgehog.harness.faults.parameters import FaultError, Positive, Seconds

SLICE_S = 0.1
"""Toxiproxy sends as much as the rate allows in this time, ten times a second."""


@fault("latency", family="wire")
class Latency(WireFault):
    """From the trigger on every byte arrives `s` seconds later than it would, on every connection of the link."""

    usual: ClassVar[int] = 3
    s: Seconds

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """Delay all later bytes; the fake holds at `at` until the delay is set."""
        pipe.delay(self.s)

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """Milliseconds, rounded up, without jitter: Toxiproxy cannot seed it."""
        return (Toxic("latency", {"latency": math.ceil(self.s * 1000), "jitter": 0}),)


@fault("bandwidth", family="wire")
class Bandwidth(WireFault):
    """From the trigger on at most `kb_per_s` thousand bytes pass in a second, on every connection of the link.

    Nothing is lost. A time scale makes it faster, as it shortens seconds.
    """

    kb_per_s: Annotated[int, Field(ge=1, le=1_000_000)]

    def scaled(self, factor: float) -> Self:
        """The same bytes in less time."""
        return replace(self, kb_per_s=max(1, min(1_000_000, round(self.kb_per_s * factor))))

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """A slice at a time; a piece that is smaller takes less time."""
        pipe.pace(at, SLICE_S, round(self.kb_per_s * 1000 * SLICE_S), in_proportion=True)

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """Its rate is in thousands of bytes a second too."""
        return (Toxic("bandwidth", {"rate": self.kb_per_s}),)


@fault("drip", family="wire")
class Drip(WireFault):
    """From the trigger on at most `bytes` bytes pass every `every_s` seconds, on every connection of the link.

    Nothing is lost.
    """

    every_s: Positive
    bytes: Annotated[int, Field(ge=1)] = 1

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """Pace everything behind `at`."""
        pipe.pace(at, self.every_s, self.bytes)

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """The slicer starts with the next byte, so the fake holds at the trigger; its delay is in µs."""
        sizes = {"average_size": self.bytes, "size_variation": 0}
        return (Toxic("slicer", {**sizes, "delay": max(1, round(self.every_s * 1_000_000))}),)


@fault("slicer", family="wire")
class Slicer(WireFault):
    """From the trigger on bytes arrive in pieces of at most `bytes` + `varies` bytes, on every connection of the link.

    `pause_s` passes after each piece. Nothing is lost. It finds readers that take the bytes of one `recv` for a whole
    event or a whole character.
    """

    bytes: Annotated[int, Field(ge=1)] = 3
    varies: Annotated[int, Field(ge=0)] = 0
    pause_s: Seconds = 0.001

    def __post_init__(self) -> None:
        WireFault.__post_init__(self)
        if self.varies >= self.bytes:
            raise FaultError(f"slicer: varies must be below bytes ({self.bytes}), not {self.varies}")

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """The largest possible pieces."""
        pipe.pace(at, self.pause_s, self.bytes + self.varies)

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """Its delay is in µs; its sizes are drawn by Toxiproxy, without a seed."""
        sizes = {"average_size": self.bytes, "size_variation": self.varies}
        return (Toxic("slicer", {**sizes, "delay": round(self.pause_s * 1_000_000)}),)
