"""Kills: a signal to whom the fault means, with proof that it was delivered and, for SIGKILL, that they are gone."""

import signal
from collections.abc import Callable, Sequence

import psutil

from wedgehog.harness.faults.process_fault import SignalName, Whom
from wedgehog.harness.inject.fault_state import FaultState
from wedgehog.harness.inject.state import InjectorState
from wedgehog.harness.inject.targets import Hit, Targets
from wedgehog.harness.record.event import AgentKilled, FaultUnproven, Note
from wedgehog.harness.sandbox.signals import deliver, gone, reap

DEAD_AT_ONCE_S = 0.1
"""Who is gone this soon after a signal that it could have handled, has not handled it."""
GONE_WITHIN_S = 5.0
"""For what got SIGKILL to be gone: else the fault is unproven."""


class Killer:
    """Aims and kills."""

    def __init__(self, board: InjectorState, targets: Targets, server_killed: Callable[[FaultState], None]) -> None:
        """`server_killed` is called when a server was hit: it comes back when the fault is healed."""
        self._board, self._server_killed = board, server_killed
        self.victims, self.sessions = targets.processes, targets.sessions
        self._server, self._grace_s = targets.server, targets.grace_s
        self.dead = False
        """Whether the last signal has ended the agent's own process, as far as can be told."""
        self.dying_until_s = 0.0
        """Until then nobody's slowness counts: a signal to end was delivered."""

    async def kill(self, state: FaultState, name: SignalName, whom: Whom, token: str, *, tear: bool) -> None:
        """Do it now. Whoever heals waits until it is done: nothing is started again in the middle of it."""
        async with state.port:
            hit = await self._hit(state, name, whom, token)
            if hit is None:
                self._board.history.add(Note(what=f"{state.planned}: nobody was there to be hit"))
                return
            torn = self.sessions.save(state.planned.trigger.turn, tear=tear) if _ends_a_turn(whom) else True
            if not hit.proof or not torn:
                self._unproven(state)
                return
            self._board.fired(state, hit.proof)

    async def _hit(self, state: FaultState, name: SignalName, whom: Whom, token: str) -> Hit | None:
        number = signal.Signals[name]
        if whom == "server":
            server = self._server()
            hit = await server.kill_server(number) if server is not None else None
            if hit is not None:
                self._tell(state, name, whom, hit.pids)
                self._server_killed(state)
            return hit
        leaders = self.victims.leaders
        processes = deliver(lambda: self.victims.find(whom, token), number)
        if not processes:
            return None
        # Told in one go with the deed, before anything that comes of it.
        self._tell(state, name, whom, [process.pid for process in processes])
        if _ends_a_turn(whom):
            self.dying_until_s = self._board.clock.now() + self._grace_s
            self.victims.struck(number, self._grace_s)
        hit = Hit(tuple(process.pid for process in processes), await self._proof(processes, number, leaders))
        agents_own = [process for process in processes if process.pid in leaders]
        self.dead = bool(agents_own) and not await gone(agents_own, self._board.clock.sleep, DEAD_AT_ONCE_S)
        return hit

    async def _proof(self, processes: Sequence[psutil.Process], number: signal.Signals, leaders: frozenset[int]) -> str:
        """How it is known; empty where it is not."""
        names = ", ".join(str(process.pid) for process in processes)
        if number != signal.SIGKILL:
            return f"{number.name} was delivered to {names}"
        since_s = self._board.clock.now()
        left = await gone(processes, self._board.clock.sleep, GONE_WITHIN_S)
        reap(processes, exclude=leaders)
        took_s = self._board.clock.now() - since_s
        return "" if left else f"SIGKILL was delivered to {names}; all were gone after {took_s * 1000:.0f} ms"

    def _tell(self, state: FaultState, name: SignalName, whom: Whom, pids: Sequence[int]) -> None:
        turn = state.planned.trigger.turn
        self._board.history.add(AgentKilled(turn=turn, signal=name, whom=whom, pids=tuple(pids)))

    def _unproven(self, state: FaultState) -> None:
        name, turn = state.planned.fault.name, state.planned.trigger.turn
        call = max((call for call, facts in self._board.calls.items() if facts.place.turn == turn), default=0)
        self._board.history.add(FaultUnproven(fault=state.index, name=name, call=call))


def _ends_a_turn(whom: Whom) -> bool:
    return whom in ("tree", "leader")
