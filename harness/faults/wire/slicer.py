"""
fake ─────┤ data: {"delta":"Hello"} ├──▶  da|ta: |{"de|lta|":"H|ell|o"}  ──▶ agent        many small pieces
"""

from typing import Annotated

from pydantic import Field

from wedgehog.harness.faults.base import FaultPipe, Toxic, WireFault, fault
from wedgehog.harness.faults.parameters import FaultError, Seconds


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
        """Refuse pieces of no bytes."""
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
