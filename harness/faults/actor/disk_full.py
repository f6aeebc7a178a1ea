"""A full disk: a write can end in the middle of a file."""

from typing import Annotated

from pydantic import Field

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.process_fault import Hands, ProcessFault


@fault("disk_full", family="actor")
class DiskFull(ProcessFault):
    """The disk on which the agent's HOME and session folder are has room for `free_bytes` more, until it is healed.

    Room is counted in whole pages of 4,096 bytes; free room in a file's last page is used first. It needs Linux
    with user namespaces, and no root; elsewhere the scenario is skipped.
    """

    free_bytes: Annotated[int, Field(ge=0)] = 0

    needs = ("processes", "disk")

    async def act(self, hands: Hands) -> None:
        """Fill it."""
        await hands.fill(self.free_bytes)
