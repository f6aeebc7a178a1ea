"""
fake ─────┤ data: {"delta":"Hel"} ├─────── s seconds ───────▶ agent        every byte, late but in order
"""

import math
from dataclasses import dataclass

from wedgehog.harness.faults.base import FaultPipe, Toxic, WireFault, fault
from wedgehog.harness.faults.parameters import Seconds


@fault("latency", family="wire")
@dataclass(frozen=True, slots=True)
class Latency(WireFault):
    """From the trigger on every byte arrives `s` seconds later than it would, on every connection of the link."""

    s: Seconds

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """Delay what comes from now on; the fake holds at `at` meanwhile."""
        pipe.delay(self.s)

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """Whole milliseconds, never too few, and without jitter, which could not be seeded."""
        return (Toxic("latency", {"latency": math.ceil(self.s * 1000), "jitter": 0}),)
