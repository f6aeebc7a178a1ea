"""
          ┌── bytes before the trigger pass ──┐
fake ─────┤ data: {"delta":"Hel"}   data: {"d ├────▶ agent        … then silence; no FIN, no RST
          └───────────────────────────────────┘
"""

from dataclasses import dataclass

from wedgehog.harness.faults.base import Ending, FaultPipe, Toxic, WireFault, fault
from wedgehog.harness.faults.parameters import Forever, Seconds

# Eleven and a half days in milliseconds: longer than any run.
FOREVER_MS = 10**9


@fault("stall", family="wire")
@dataclass(frozen=True, slots=True)
class Stall(WireFault):
    """Silence from the trigger on: the connection stays open and no byte comes.

    `for_s` a number means that the stream goes on without loss afterwards. No network can do that to the byte, so the
    fake model holds at the trigger for that long, and the network is never asked. Healing a stall that lasts for ever
    sends FIN: what came behind the trigger is lost.
    """

    for_s: Forever | Seconds = "forever"

    @property
    def ends(self) -> Ending:
        """With silence."""
        return "stall"

    @property
    def holds_s(self) -> float | None:
        """A stall that ends is the sender's pause."""
        return None if self.for_s == "forever" else self.for_s

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """Let `at` bytes pass, then nothing."""
        pipe.stop(at, "stall")

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """Hold back the close first, then limit: the other way round the agent would get FIN at once."""
        return Toxic("slow_close", {"delay": FOREVER_MS}), Toxic("limit_data", {"bytes": at})
