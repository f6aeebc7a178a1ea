"""
fake ─────┤ 40 KB at once ├──▶  4 KB · · 4 KB · · 4 KB · ·  ──▶ agent        `kb_per_s` thousand bytes a second
"""

from dataclasses import replace
from typing import Annotated, Self

from pydantic import Field

from wedgehog.harness.faults.base import FaultPipe, Toxic, WireFault, fault

SLICE_S = 0.1
"""Toxiproxy sends as much as the rate allows in this time, ten times a second."""


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
        """A slice at a time."""
        pipe.pace(at, SLICE_S, round(self.kb_per_s * 1000 * SLICE_S))

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """Its rate is in thousands of bytes a second too."""
        return (Toxic("bandwidth", {"rate": self.kb_per_s}),)
