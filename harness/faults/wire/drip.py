"""
fake ─────┤ data: {"delta":"Hello"} ├──▶  d · · a · · t · · a · · :  ──▶ agent      one byte per `every_s`
"""

from typing import Annotated

from pydantic import Field

from wedgehog.harness.faults.base import FaultPipe, Toxic, WireFault, fault
from wedgehog.harness.faults.parameters import Positive


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
