"""Full disks: no room from the trigger on, with proof that nothing can be written, and room again whatever happens."""

from typing import Protocol

from wedgehog.harness.inject.fault_state import FaultState
from wedgehog.harness.inject.heal import Healer
from wedgehog.harness.inject.state import InjectorState


class Disk(Protocol):
    """The disk of an agent."""

    async def fill(self, free_bytes: int) -> str:
        """Leave room for so much; how that is known, empty where it is not."""
        ...

    async def relieve(self) -> None:
        """Give it room again."""
        ...


class DiskFiller:
    """Fills the agent's disk for a while."""

    def __init__(self, board: InjectorState, healing: Healer) -> None:
        """There is no disk yet."""
        self._board, self._healing = board, healing
        self.disk: Disk | None = None

    async def fill(self, state: FaultState, free_bytes: int) -> None:
        """Do it now. Whoever heals waits until there is room again."""
        if self.disk is None:
            return
        await state.port.acquire()
        try:
            proof = await self.disk.fill(free_bytes)
            if proof:
                self._board.fired(state, proof)
                if state.planned.heal_after_s is not None:
                    self._board.spawn(self._healing.heal_in(state, state.planned.heal_after_s))
        finally:
            self._board.spawn(self._relieve(state, self.disk))

    async def _relieve(self, state: FaultState, disk: Disk) -> None:
        try:
            await state.healed.wait()
            await disk.relieve()
        finally:
            state.port.release()
