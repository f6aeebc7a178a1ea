"""Whom faults on processes hit: the run that owns the agent says where its processes and its sessions are."""

import signal
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import psutil

from wedgehog.harness.faults.process_fault import Whom


class ProcessTargets(Protocol):
    """The processes of an agent, as they are aimed at."""

    def find(self, whom: Whom, token: str) -> Iterable[psutil.Process]:
        """Those that live now, each yielded before the next is looked for; `token` (turn.step.call) is the tool's."""
        ...

    def struck(self, number: signal.Signals, grace_s: float) -> None:
        """A signal to end it was delivered to the agent's own process: it may take `grace_s` to end by it."""
        ...

    @property
    def leaders(self) -> frozenset[int]:
        """Pids of the agent's own processes, whose ends somebody waits for."""
        ...


class SessionFileTargets(Protocol):
    """The agent's session files."""

    def look(self) -> Hashable:
        """Something that differs whenever one of them has been written."""
        ...

    def save(self, turn: int, *, tear: bool) -> bool:
        """Keep what they hold after a crash, of which `tear` first takes half of a last line; whether it could."""
        ...


class Disk(Protocol):
    """The disk of an agent."""

    async def fill(self, free_bytes: int) -> str:
        """Leave room for so much; how that is known, empty where it is not."""
        ...

    async def relieve(self) -> None:
        """Give it room again."""
        ...


class NoTargets:
    """Where there is no agent that could be hit."""

    leaders: frozenset[int] = frozenset()

    def find(self, whom: Whom, token: str) -> Iterable[psutil.Process]:
        """Nobody."""
        return ()

    def struck(self, number: signal.Signals, grace_s: float) -> None:
        """Nobody hears it."""

    def look(self) -> Hashable:
        """Nothing is ever written."""
        return ()

    def save(self, turn: int, *, tear: bool) -> bool:
        """There is nothing to keep, and nothing to tear."""
        return not tear


@dataclass(frozen=True, slots=True)
class Hit:
    """Who was hit, and how that is known."""

    pids: tuple[int, ...]
    proof: str


class ServerTarget(Protocol):
    """The tool host's server."""

    async def kill_server(self, number: signal.Signals) -> Hit | None:
        """End it by a signal, or as that signal would; None if there is none."""
        ...

    async def restart_server(self) -> None:
        """Bring it back."""
        ...


@dataclass(frozen=True, slots=True)
class Targets:
    """What faults on processes can hit in a run; an agent that can handle a signal has `grace_s` to end by it."""

    processes: ProcessTargets = field(default_factory=NoTargets)
    sessions: SessionFileTargets = field(default_factory=NoTargets)
    disk: Callable[[], Disk | None] = lambda: None
    grace_s: float = 5.0
    server: Callable[[], ServerTarget | None] = lambda: None
