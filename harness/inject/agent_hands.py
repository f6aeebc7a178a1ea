"""What a planned fault does to processes, disks, databases and hosts, and its proof. What is stopped always goes on."""

import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import psutil

from wedgehog.harness.faults.process_fault import Demand, HostHarm, SignalName, Whom
from wedgehog.harness.inject.fault_state import FaultState
from wedgehog.harness.inject.link_faults import LinkFaults
from wedgehog.harness.inject.process_faults import ProcessFaults
from wedgehog.harness.inject.targets import Hit, HostTarget, ServerTarget
from wedgehog.harness.network.base import NetworkError, Strike
from wedgehog.harness.record.events.turn import AGENT_ITSELF, AgentKilled, Frozen, Thawed
from wedgehog.harness.sandbox.signals import deliver, gone, reap, stopped
from wedgehog.harness.scenario.trigger import AfterStart, AtTool

DEAD_AT_ONCE_S = 0.1
"""A process that is gone this soon after a signal that it could have handled has not handled it."""
GONE_WITHIN_S = 5.0
"""For processes that got SIGKILL to be gone: else the fault is unproven."""
STILL_WITHIN_S = 5.0
"""For processes that got SIGSTOP to stand still: else the fault is unproven."""


@dataclass(frozen=True, slots=True)
class AgentHands:
    """The `Hands` of one planned fault. Healing waits for what they do."""

    agent: ProcessFaults
    state: FaultState

    @property
    def run(self) -> LinkFaults:
        """The faults of the run, of which these hands serve one."""
        return self.agent.run

    async def demand(self, what: Demand) -> None:
        """The runner stops the turn, or closes the client connection."""
        self.run.fired(self.state, "the harness did it")
        self.agent.leaves = True
        at = self.state.at
        await self.agent.demands.put((what, at.after_s if isinstance(at, AfterStart) else None))

    async def speak(self, turn: int) -> None:
        """The runner gives the message."""
        await self.agent.messages.put(turn)

    # ---- kills

    async def kill(self, signal: SignalName, whom: Whom, *, tear: bool) -> None:
        """Send a signal, with proof that it was delivered and, for SIGKILL, that the processes are gone."""
        async with self.state.busy:
            hit = await (self._kill_server(signal) if whom == "server" else self._kill(signal, whom))
            if hit is None:
                self.run.no_target(self.state)
                return
            torn = whom not in AGENT_ITSELF or self.agent.targets.sessions.save(self.state.at.turn, tear=tear)
            if hit.proof and torn:
                self.run.fired(self.state, hit.proof)
                return
            turn = self.state.at.turn
            calls = (call for call, (place, _) in self.run.calls.items() if place.turn == turn)
            self.run.unproven(self.state, max(calls, default=0))

    async def _kill_server(self, name: SignalName) -> Hit | None:
        server = self.agent.targets.server()
        hit = await server.kill_server(signal.Signals[name]) if server is not None else None
        if hit is not None and server is not None:
            self._killed(name, "server", hit.pids)
            self.run.back_later(self.state, KilledServerStrike(self.run, server))
        return hit

    async def _kill(self, name: SignalName, whom: Whom) -> Hit | None:
        number, leaders = signal.Signals[name], self.agent.targets.processes.leaders
        turn = self.state.at.turn
        processes = deliver(lambda: self.agent.targets.processes.find(whom, self._tool(), turn), number)
        if not processes:
            return None
        # Recorded before the next await, so that it comes before all that follows from it.
        pids = tuple(process.pid for process in processes)
        self._killed(name, whom, pids)
        if whom in AGENT_ITSELF:
            self.agent.dying_until_s = self.run.clock.now() + self.agent.targets.grace_s
            self.agent.targets.processes.struck(number, self.agent.targets.grace_s, turn)
        hit = Hit(pids, await self._proof(processes, number, leaders))
        connected = [process for process in processes if process.pid in leaders or whom in ("worker", "subagent")]
        self.agent.leaves = bool(connected) and not await gone(connected, self.run.clock.sleep, DEAD_AT_ONCE_S)
        return hit

    async def _proof(self, processes: Sequence[psutil.Process], number: signal.Signals, leaders: frozenset[int]) -> str:
        """How it is known; empty where it is not."""
        if number != signal.SIGKILL:
            return f"{number.name} was delivered to {_pids(processes)}"
        since_s = self.run.clock.now()
        left = await gone(processes, self.run.clock.sleep, GONE_WITHIN_S)
        reap(processes, exclude=leaders)
        took_ms = (self.run.clock.now() - since_s) * 1000
        return "" if left else f"SIGKILL was delivered to {_pids(processes)}; all were gone after {took_ms:.0f} ms"

    def _killed(self, name: SignalName, whom: Whom, pids: tuple[int, ...]) -> None:
        self.run.history.add(AgentKilled(turn=self.state.at.turn, signal=name, whom=whom, pids=pids))

    def _tool(self) -> str:
        """The tool call that the trigger names; else the youngest that runs."""
        at = self.state.at
        return f"{at.turn}.{at.step}.{at.tool}" if isinstance(at, AtTool) else next(reversed(self.agent.tools), "")

    # ---- freezes

    async def freeze(self, whom: Whom, for_s: float) -> None:
        """Stop processes, and return when they stand still; healing waits until they go on."""
        await self.state.busy.acquire()
        hit: list[psutil.Process] = []
        try:
            turn = self.state.at.turn
            hit = deliver(lambda: self.agent.targets.processes.find(whom, self._tool(), turn), signal.SIGSTOP)
            if not hit:
                self.run.no_target(self.state)
                return
            if whom in AGENT_ITSELF:
                self.agent.frozen_since_s[self.state.index] = self.run.clock.now()
            pids = tuple(process.pid for process in hit)
            self.run.history.add(Frozen(turn=self.state.at.turn, whom=whom, pids=pids, for_s=for_s))
            if not await stopped(hit, self.run.clock.sleep, STILL_WITHIN_S):
                self.run.fired(self.state, f"SIGSTOP was delivered to {_pids(hit)}; all stood still")
        finally:
            if hit:
                self.run.spawn(self._thaw(whom, for_s, hit))
            else:
                self.state.busy.release()

    async def _thaw(self, whom: Whom, for_s: float, hit: Sequence[psutil.Process]) -> None:
        since_s = self.run.clock.now()
        try:
            await self.run.unless_healed(self.state, for_s)
        finally:
            for process in hit:
                with suppress(psutil.Error):
                    process.send_signal(signal.SIGCONT)
            now = self.run.clock.now()
            self.agent.thawed_s += now - self.agent.frozen_since_s.pop(self.state.index, now)
            self.run.history.add_unless_sealed(Thawed(turn=self.state.at.turn, whom=whom, after_s=now - since_s))
            self.state.busy.release()

    # ---- disks

    async def fill(self, free_bytes: int) -> None:
        """Leave so much room on the disk; healing waits until there is room again."""
        if (disk := self.agent.targets.disk()) is not None:
            await self._until_healed(partial(disk.fill, free_bytes), disk.heal)

    # ---- databases

    async def lock_databases(self) -> None:
        """Hold the locks; healing waits until they are given back."""
        if (databases := self.agent.targets.databases()) is not None:
            await self._until_healed(databases.lock, databases.release)

    async def _until_healed(self, harm: Callable[[], Awaitable[str]], undo: Callable[[], Awaitable[None]]) -> None:
        """Do harm that gives its proof, or nothing where it was not done; undo it when the fault is healed."""
        await self.state.busy.acquire()
        try:
            if proof := await harm():
                self.run.fired(self.state, proof)
                if self.state.planned.heal_after_s is not None:
                    self.run.spawn(self.run.heal_in(self.state, self.state.planned.heal_after_s))
        finally:
            self.run.spawn(self._undo(undo))

    async def _undo(self, undo: Callable[[], Awaitable[None]]) -> None:
        try:
            await self.state.healed.wait()
            await undo()
        finally:
            self.state.busy.release()

    # ---- hosts

    async def harm_host(self, harm: HostHarm) -> None:
        """Harm the hosts; healing waits until they are as before."""
        hosts = self.agent.targets.hosts()
        if hosts is None:
            self.run.no_target(self.state)
            return
        await self.state.busy.acquire()
        try:
            await hosts.harm(self.state.planned.link, harm, self._met_host)
        finally:
            self.run.spawn(self._mend(hosts))

    def _met_host(self, proof: str) -> None:
        """The agent meets it again and again; the first time is its proof."""
        if self.state.fired or self.state.healed.is_set():
            return
        self.run.fired(self.state, proof)
        if self.state.planned.heal_after_s is not None:
            self.run.spawn(self.run.heal_in(self.state, self.state.planned.heal_after_s))

    async def _mend(self, hosts: HostTarget) -> None:
        try:
            await self.state.healed.wait()
            hosts.heal(self.state.planned.link)
        finally:
            self.state.busy.release()


def _pids(processes: Sequence[psutil.Process]) -> str:
    return ", ".join(str(process.pid) for process in processes)


@dataclass(eq=False)
class KilledServerStrike(Strike):
    """A killed server. The kill has its own proof; healing brings the server back."""

    run: LinkFaults
    server: ServerTarget

    async def heal(self) -> None:
        """Start the server again."""
        try:
            await self.server.restart_server()
        except Exception as wrong:  # without a tool host the next turn would prove nothing, whatever the cause
            self.run.fail(NetworkError(str(wrong)))
