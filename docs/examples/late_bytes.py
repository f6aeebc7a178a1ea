"""An example of a wire fault: every byte arrives late."""

import math

from wedgehog.harness.faults.base import FaultPipe, Toxic, WireFault, fault
from wedgehog.harness.faults.parameters import Seconds


@fault("late_bytes", family="wire")
class LateBytes(WireFault):
    """From the trigger on every byte arrives `by_s` seconds late; no byte is lost."""

    by_s: Seconds = 0.5

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """For the embedded relay: delay this direction of the connection."""
        pipe.delay(self.by_s)

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """For Toxiproxy: the same delay, in milliseconds."""
        return (Toxic("latency", {"latency": math.ceil(self.by_s * 1000), "jitter": 0}),)
