"""A disk without room: the oldest way to tear a file in two."""

from dataclasses import dataclass
from typing import Annotated

from wedgehog.harness.faults.base import Need, fault
from wedgehog.harness.faults.parameters import Range
from wedgehog.harness.faults.process_fault import Hands, ProcessFault


@fault("disk_full", family="actor")
@dataclass(frozen=True, slots=True)
class DiskFull(ProcessFault):
    """The disk on which the agent's HOME and session folder lie has room for `free_bytes` more, until it is healed.

    Room is counted in whole pages of 4,096 bytes; what a file's last page still holds is used first. It needs Linux
    with user namespaces, and no root; elsewhere the scenario is skipped.
    """

    free_bytes: Annotated[int, Range(0)] = 0

    @property
    def needs(self) -> tuple[Need, ...]:
        """A disk of the agent's own."""
        return ("processes", "disk")

    async def act(self, hands: Hands) -> None:
        """Fill it."""
        await hands.fill(self.free_bytes)
