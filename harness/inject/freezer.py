"""Freezes: SIGSTOP to whom the fault means, with proof that they stand still, and SIGCONT whatever happens."""

import signal
from collections.abc import Sequence
from contextlib import suppress

import psutil

from wedgehog.harness.faults.process_fault import Whom
from wedgehog.harness.inject.fault_state import FaultState
from wedgehog.harness.inject.killer import Killer
from wedgehog.harness.inject.state import InjectorState
from wedgehog.harness.record.event import Frozen, Note, Thawed
from wedgehog.harness.sandbox.signals import deliver, stopped

STILL_WITHIN_S = 5.0
"""For what got SIGSTOP to stand still: else the fault is unproven."""


class Freezer:
    """Makes processes stand still for a while."""

    def __init__(self, board: InjectorState, killing: Killer) -> None:
        """`killing` knows whom there is to hit."""
        self._board, self._killing = board, killing
        self._thawed_s = 0.0
        self._since_s: dict[int, float] = {}

    @property
    def frozen_s(self) -> float:
        """How long the agent itself has stood still so far, in this run."""
        now = self._board.clock.now()
        return self._thawed_s + max((now - since_s for since_s in self._since_s.values()), default=0)

    async def freeze(self, state: FaultState, whom: Whom, for_s: float, token: str) -> None:
        """Do it now; return when they stand. Whoever heals waits until they go on again."""
        await state.port.acquire()
        hit: list[psutil.Process] = []
        try:
            hit = deliver(lambda: self._killing.victims.find(whom, token), signal.SIGSTOP)
            if not hit:
                self._board.history.add(Note(what=f"{state.planned}: nobody was there to be hit"))
                return
            self._begin(state, whom, for_s, hit)
            left = await stopped(hit, self._board.clock.sleep, STILL_WITHIN_S)
            if not left:
                names = ", ".join(str(process.pid) for process in hit)
                self._board.fired(state, f"SIGSTOP was delivered to {names}; all stood still")
        finally:
            if hit:
                self._board.spawn(self._thaw(state, whom, for_s, hit))
            else:
                state.port.release()

    def _begin(self, state: FaultState, whom: Whom, for_s: float, hit: Sequence[psutil.Process]) -> None:
        if whom != "tool":
            self._since_s[state.index] = self._board.clock.now()
        pids = tuple(process.pid for process in hit)
        turn = state.planned.trigger.turn
        self._board.history.add(Frozen(turn=turn, whom=whom, pids=pids, for_s=for_s))

    async def _thaw(self, state: FaultState, whom: Whom, for_s: float, hit: Sequence[psutil.Process]) -> None:
        since_s = self._board.clock.now()
        try:
            await self._board.unless_healed(state, for_s)
        finally:
            for process in hit:
                with suppress(psutil.Error):
                    process.send_signal(signal.SIGCONT)
            if state.index in self._since_s:
                self._thawed_s += self._board.clock.now() - self._since_s.pop(state.index)
            if not self._board.history.sealed:
                turn, after_s = state.planned.trigger.turn, self._board.clock.now() - since_s
                self._board.history.add(Thawed(turn=turn, whom=whom, after_s=after_s))
            state.port.release()
