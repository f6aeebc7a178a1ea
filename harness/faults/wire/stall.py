"""
          ┌── bytes before the trigger pass ──┐
fake ─────┤ data: {"delta":"Hel"}   data: {"d ├────▶ agent        … then silence; no FIN, no RST
          └───────────────────────────────────┘
"""

from typing import ClassVar

from wedgehog.harness.faults.base import FaultPipe, Toxic, WireFault, fault
from wedgehog.harness.faults.parameters import Forever, Seconds

# Eleven and a half days in milliseconds: longer than any run.
FOREVER_MS = 10**9


@fault("stall", family="wire")
class Stall(WireFault):
    """Silence from the trigger on: the connection stays open and no byte comes.

    After `for_s` seconds the stream goes on without loss. No network can do that exactly at a byte, so the fake model
    itself holds at the trigger for that long. Healing a stall that lasts for ever sends FIN: the bytes after the
    trigger are lost.
    """

    usual: ClassVar[int] = 8
    usual_at: ClassVar[str] = "body"
    for_s: Forever | Seconds = "forever"

    ends = "stall"

    @property
    def holds_s(self) -> float | None:
        """The sender makes a stall that ends."""
        return None if self.for_s == "forever" else self.for_s

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """Let `at` bytes pass, then nothing."""
        pipe.stop(at, "stall")

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """Hold back the close first, then limit: the other way round the agent would get FIN at once."""
        return Toxic("slow_close", {"delay": FOREVER_MS}), Toxic("limit_data", {"bytes": at})
