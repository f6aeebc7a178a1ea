"""The processes of a run's agent that faults hit, as they are at that moment."""

import re
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import psutil

from wedgehog.harness.agents.base import DeliveredSignal, Session
from wedgehog.harness.faults.process_fault import Whom
from wedgehog.harness.inject.targets import ProcessTargets
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.turn import AGENT_ITSELF, MAIN_SESSION
from wedgehog.harness.run.watching.workers import Peers, askers_below, subagents_below, workers_below
from wedgehog.harness.sandbox.process_info import tree_of
from wedgehog.harness.sandbox.signals import tree


@dataclass
class AgentProcesses(ProcessTargets):
    """The processes of a run's agent. `sessions` are the open ones: a second one of a name runs a message in a turn."""

    mark: str
    clock: Clock
    sessions: list[Session] = field(default_factory=list)
    session_of: Callable[[int], str] = lambda turn: MAIN_SESSION
    """The name of the session of a turn."""
    peers: Peers = lambda processes: ()
    """Finds the open connections of processes."""
    _asked: dict[psutil.Process, None] = field(default_factory=dict)
    """The processes that have been seen to ask the model."""

    @property
    def leaders(self) -> frozenset[int]:
        """Pids of the agent's own processes; their sessions reap them."""
        return _leaders(self.sessions)

    def pids(self) -> Iterator[int]:
        """All live processes of the agent and below it."""
        yield from (process.pid for process in tree_of(self.mark, self.leaders))

    def find(self, whom: Whom, token: str, turn: int) -> Iterator[psutil.Process]:
        """Live processes; a tree's leader comes first, and gets its signal before the rest is looked for."""
        if whom == "tool":
            yield from self._tool(token)
        if whom == "worker":
            tool = next(self._tool(token), None)
            for pid in _leaders(self._of(turn)):
                yield from workers_below(pid, self.peers, tool, self._asked)
        if whom == "subagent":
            for pid in _leaders(self._of(turn)):
                yield from subagents_below(pid, self.peers)
        for pid in _leaders(self._of(turn)) if whom in AGENT_ITSELF else ():
            found = tree(pid)
            yield from found if whom == "tree" else [process for process in found if process.pid == pid]

    def askers(self) -> Iterator[psutil.Process]:
        """The processes below the agent's own ones that ask the model."""
        for pid in self.leaders:
            for asker in askers_below(pid, self.peers):
                self._asked[asker] = None
                yield asker

    def struck(self, number: signal.Signals, grace_s: float, turn: int) -> None:
        """Pass a signal to end the agent on to the session of a turn."""
        for session in self._of(turn):
            session.signalled(DeliveredSignal(number, self.clock.now() + grace_s))

    def _of(self, turn: int) -> list[Session]:
        return [session for session in self.sessions if session.name == self.session_of(turn)]

    def _tool(self, token: str) -> Iterator[psutil.Process]:
        """The youngest shell with the scripted command, wherever it has moved, and all processes below it.

        It may lack the run's mark: some agents give their commands a clean environment. A child that a shell has
        forked shows the shell's own words until it runs a program: it is no shell of its own.
        """
        begins = re.compile(rf"printf ['\"\\]+{re.escape(token)} started")  # (an agent may quote it once more)
        lines = [(process, _words(process)) for process in tree_of(self.mark, self.leaders)] if token else []
        found = {process.pid: line for process, line in lines if any(map(begins.search, line))}
        shells = [one for one, line in lines if one.pid in found and found.get(_parent(one)) != line]
        if shells:
            youngest = max(shells, key=lambda process: (process.create_time(), process.pid))
            yield youngest
            yield from youngest.children(recursive=True)


def _leaders(sessions: Iterable[Session]) -> frozenset[int]:
    return frozenset(session.leader.pid for session in sessions if session.leader is not None)


def _words(process: psutil.Process) -> tuple[str, ...]:
    """Its command line; nothing if it has ended."""
    with suppress(psutil.Error):
        return tuple(process.cmdline())
    return ()


def _parent(process: psutil.Process) -> int:
    with suppress(psutil.Error):
        return process.ppid()
    return 0
