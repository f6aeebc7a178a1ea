"""Faults on processes and disks, with the proof of each; what is stopped goes on again whatever happens."""

import asyncio
import signal
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import psutil

from wedgehog.harness.faults.process_fault import Demand, SignalName, Whom
from wedgehog.harness.inject.heal import Healer
from wedgehog.harness.inject.state import FaultState, InjectorState
from wedgehog.harness.network.base import NetworkError, Proof
from wedgehog.harness.record.event import AgentKilled, FaultUnproven, Frozen, Thawed
from wedgehog.harness.sandbox.signals import deliver, gone, reap, stopped
from wedgehog.harness.scenario.trigger import AtTool

DEAD_AT_ONCE_S = 0.1
"""A process that is gone this soon after a signal that it could have handled has not handled it."""
GONE_WITHIN_S = 5.0
"""For processes that got SIGKILL to be gone: else the fault is unproven."""
STILL_WITHIN_S = 5.0
"""For processes that got SIGSTOP to stand still: else the fault is unproven."""


class Disk(Protocol):
    """The disk of an agent."""

    async def fill(self, free_bytes: int) -> str:
        """Leave room for so much; return how that is known, or nothing where it is not."""
        ...

    async def relieve(self) -> None:
        """Give it room again."""
        ...


class ProcessTargets(Protocol):
    """The processes of an agent."""

    def find(self, whom: Whom, token: str) -> Iterable[psutil.Process]:
        """Those that live now, each yielded before the next is looked for; `token` is the tool's turn.step.call."""
        ...

    def struck(self, number: signal.Signals, grace_s: float) -> None:
        """A signal to end it was delivered to the agent's own process: it may take `grace_s` to end by it."""
        ...

    @property
    def leaders(self) -> frozenset[int]:
        """Pids of the agent's own processes, which the run reaps."""
        ...


class SessionFileTargets(Protocol):
    """The agent's session files."""

    def look(self) -> Hashable:
        """A value that changes whenever one of them is written."""
        ...

    def save(self, turn: int, *, tear: bool) -> bool:
        """Keep what they hold after a crash; `tear` first removes half of a last line. Whether that was possible."""
        ...


@dataclass(frozen=True, slots=True)
class Hit:
    """The processes that were hit, and how that is known."""

    pids: tuple[int, ...]
    proof: str


class ServerTarget(Protocol):
    """The tool host's server."""

    async def kill_server(self, number: signal.Signals) -> Hit | None:
        """End it by a signal, or as that signal would; None if there is no server."""
        ...

    async def restart_server(self) -> None:
        """Start it again."""
        ...


class NoTargets:
    """The targets of a run without an agent."""

    leaders: frozenset[int] = frozenset()

    def find(self, whom: Whom, token: str) -> Iterable[psutil.Process]:
        """No process."""
        return ()

    def struck(self, number: signal.Signals, grace_s: float) -> None:
        """There is no process to wait for."""

    def look(self) -> Hashable:
        """No file is ever written."""
        return ()

    def save(self, turn: int, *, tear: bool) -> bool:
        """There is nothing to keep, and nothing to tear."""
        return not tear


@dataclass(frozen=True, slots=True)
class Targets:
    """What faults on processes can hit in a run; a process that handles a signal has `grace_s` to end by it."""

    processes: ProcessTargets = field(default_factory=NoTargets)
    sessions: SessionFileTargets = field(default_factory=NoTargets)
    disk: Callable[[], Disk | None] = lambda: None
    grace_s: float = 5.0
    server: Callable[[], ServerTarget | None] = lambda: None


@dataclass
class Agent:
    """The agent that is hit: its targets, its state, and what the runner must do with it."""

    targets: Targets
    demands: "asyncio.Queue[tuple[Demand, float | None]]" = field(default_factory=asyncio.Queue)
    """What the runner must do with the turn now, with the scripted delay."""
    messages: "asyncio.Queue[int]" = field(default_factory=asyncio.Queue)
    """Turns whose message the runner must give now, beside the one under way."""
    tools: dict[str, None] = field(default_factory=dict)
    """Scripted commands that run, oldest first."""
    leaves: bool = False
    """Whether the last fault makes the agent close its connections: its process was ended, or the user stopped it."""
    dying_until_s: float = 0.0
    """Until then an agent that got a signal to end may still end by it: no deadline is judged before."""
    thawed_s: float = 0.0
    frozen_since_s: dict[int, float] = field(default_factory=dict)

    def frozen_s(self, now: float) -> float:
        """How long its own processes have stood still so far."""
        return self.thawed_s + max((now - since_s for since_s in self.frozen_since_s.values()), default=0)


@dataclass(frozen=True, slots=True)
class AgentHands:
    """The `Hands` of one planned fault. Healing waits for what they do."""

    agent: Agent
    run: InjectorState
    healer: Healer
    state: FaultState

    async def demand(self, what: Demand) -> None:
        """The runner stops the turn, or closes the client connection."""
        self.run.fired(self.state, "the runner did it")
        self.agent.leaves = True
        await self.agent.demands.put((what, self.state.at.after_s))

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
            torn = not _ends_a_turn(whom) or self.agent.targets.sessions.save(self.state.at.turn, tear=tear)
            if hit.proof and torn:
                self.run.fired(self.state, hit.proof)
                return
            turn = self.state.at.turn
            call = max((call for call, (place, _) in self.run.calls.items() if place.turn == turn), default=0)
            name = self.state.planned.fault.name
            self.run.history.add(FaultUnproven(fault=self.state.index, name=name, call=call))

    async def _kill_server(self, name: SignalName) -> Hit | None:
        server = self.agent.targets.server()
        hit = await server.kill_server(signal.Signals[name]) if server is not None else None
        if hit is not None and server is not None:
            self._killed(name, "server", hit.pids)
            self.healer.back_later(self.state, _KilledServer(self.run, server))
        return hit

    async def _kill(self, name: SignalName, whom: Whom) -> Hit | None:
        number, leaders = signal.Signals[name], self.agent.targets.processes.leaders
        processes = deliver(lambda: self.agent.targets.processes.find(whom, self._tool()), number)
        if not processes:
            return None
        # Recorded before the next await, so that it comes before all that follows from it.
        pids = tuple(process.pid for process in processes)
        self._killed(name, whom, pids)
        if _ends_a_turn(whom):
            self.agent.dying_until_s = self.run.clock.now() + self.agent.targets.grace_s
            self.agent.targets.processes.struck(number, self.agent.targets.grace_s)
        hit = Hit(pids, await self._proof(processes, number, leaders))
        agents_own = [process for process in processes if process.pid in leaders]
        self.agent.leaves = bool(agents_own) and not await gone(agents_own, self.run.clock.sleep, DEAD_AT_ONCE_S)
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
            hit = deliver(lambda: self.agent.targets.processes.find(whom, self._tool()), signal.SIGSTOP)
            if not hit:
                self.run.no_target(self.state)
                return
            if whom != "tool":
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
            if not self.run.history.sealed:
                self.run.history.add(Thawed(turn=self.state.at.turn, whom=whom, after_s=now - since_s))
            self.state.busy.release()

    # ---- disks

    async def fill(self, free_bytes: int) -> None:
        """Leave so much room on the disk; healing waits until there is room again."""
        disk = self.agent.targets.disk()
        if disk is None:
            return
        await self.state.busy.acquire()
        try:
            if proof := await disk.fill(free_bytes):
                self.run.fired(self.state, proof)
                if self.state.planned.heal_after_s is not None:
                    self.run.spawn(self.healer.heal_in(self.state, self.state.planned.heal_after_s))
        finally:
            self.run.spawn(self._relieve(disk))

    async def _relieve(self, disk: Disk) -> None:
        try:
            await self.state.healed.wait()
            await disk.relieve()
        finally:
            self.state.busy.release()


def _pids(processes: Sequence[psutil.Process]) -> str:
    return ", ".join(str(process.pid) for process in processes)


def _ends_a_turn(whom: Whom) -> bool:
    return whom in ("tree", "leader")


@dataclass(frozen=True, slots=True)
class _KilledServer:
    """A killed server, as an armed fault: healing it brings the server back."""

    run: InjectorState
    server: ServerTarget

    async def fired(self, timeout_s: float) -> Proof | None:
        """The kill has its own proof."""
        return None

    async def heal(self) -> None:
        """Start it again."""
        try:
            await self.server.restart_server()
        except Exception as wrong:  # without a tool host the next turn would prove nothing, whatever the cause
            self.run.fail(NetworkError(str(wrong)))
