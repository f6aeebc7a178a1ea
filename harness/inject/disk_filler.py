"""Full disks: no room from the trigger on, with proof that nothing can be written, and room again whatever happens."""

from collections.abc import Callable

from wedgehog.harness.inject.fault_state import FaultState
from wedgehog.harness.inject.heal import Healer
from wedgehog.harness.inject.state import InjectorState
from wedgehog.harness.inject.targets import Disk


class DiskFiller:
    """Fills the agent's disk for a while."""

    def __init__(self, board: InjectorState, healing: Healer, disk: Callable[[], Disk | None]) -> None:
        """`disk` returns the agent's, None if nothing can be filled."""
        self._board, self._healing, self._disk = board, healing, disk

    async def fill(self, state: FaultState, free_bytes: int) -> None:
        """Do it now. Whoever heals waits until there is room again."""
        disk = self._disk()
        if disk is None:
            return
        await state.port.acquire()
        try:
            proof = await disk.fill(free_bytes)
            if proof:
                self._board.fired(state, proof)
                if state.planned.heal_after_s is not None:
                    self._board.spawn(self._healing.heal_in(state, state.planned.heal_after_s))
        finally:
            self._board.spawn(self._relieve(state, disk))

    async def _relieve(self, state: FaultState, disk: Disk) -> None:
        try:
            await state.healed.wait()
            await disk.relieve()
        finally:
            state.port.release()
