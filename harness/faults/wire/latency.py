"""
fake ─────┤ data: {"delta":"Hel"} ├─────── s seconds ───────▶ agent        every byte, late but in order
"""

import math

from wedgehog.harness.faults.base import FaultPipe, Toxic, WireFault, fault
from wedgehog.harness.faults.parameters import Seconds


@fault("latency", family="wire")
class Latency(WireFault):
    """From the trigger on every byte arrives `s` seconds later than it would, on every connection of the link."""

    s: Seconds

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """Delay all later bytes; the fake holds at `at` until the delay is set."""
        pipe.delay(self.s)

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """Milliseconds, rounded up, without jitter: Toxiproxy cannot seed it."""
        return (Toxic("latency", {"latency": math.ceil(self.s * 1000), "jitter": 0}),)
