"""
fake ─────┤ data: {"delta":"Hel"} ├─────── s seconds ───────▶ agent        every byte, late but in order
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from wedgehog.harness.faults.base import FaultPipe, Toxic, WireFault, fault
from wedgehog.harness.faults.parameters import Seconds


@fault("latency", family="wire")
@dataclass(frozen=True, slots=True)
class Latency(WireFault):
    """From the trigger on every byte arrives `s` seconds later than it would, for as long as the fault is there.

    Through Toxiproxy it delays every connection of the link.
    """

    armed: ClassVar[Literal["before", "at_spot"]] = "at_spot"
    s: Seconds

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """Delay what comes from now on; the fake holds at `at` meanwhile."""
        pipe.delay(self.s)

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """Whole milliseconds, without jitter, which could not be seeded."""
        return (Toxic("latency", {"latency": round(self.s * 1000), "jitter": 0}),)
