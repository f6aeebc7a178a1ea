"""What faults on processes, session files and disks can hit in a run."""

import signal
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import psutil

from wedgehog.harness.faults.process_fault import HostHarm, Whom


class ProcessTargets:
    """The processes of an agent; these defaults are for a run without one."""

    @property
    def leaders(self) -> frozenset[int]:
        """Pids of the agent's own processes, which the run reaps."""
        return frozenset()

    def find(self, whom: Whom, token: str, turn: int) -> Iterable[psutil.Process]:
        """Those that live now and serve the session of a turn, each yielded before the next is looked for.

        `token` is the tool's turn.step.call.
        """
        return ()

    def struck(self, number: signal.Signals, grace_s: float, turn: int) -> None:
        """A signal to end it was delivered to that session's own process: it may take `grace_s` to end by it."""


class SessionFileTargets:
    """The agent's session files; these defaults are for an agent without any."""

    def look(self) -> Hashable:
        """A value that changes whenever one of them is written."""
        return ()

    def save(self, turn: int, *, tear: bool) -> bool:
        """Keep what they hold after a crash; `tear` first removes half of a last line. Whether that was possible."""
        return not tear


class Disk(Protocol):
    """The disk of an agent."""

    async def fill(self, free_bytes: int) -> str:
        """Leave room for so much; return how that is known, or nothing where it is not."""

    async def heal(self) -> None:
        """Free the space again."""


class Databases(Protocol):
    """The SQLite databases of an agent."""

    async def lock(self) -> str:
        """Hold their locks; return how that is known, or nothing where there is none to hold."""

    async def release(self) -> None:
        """Give the locks back."""


@dataclass(frozen=True, slots=True)
class Hit:
    """The processes that were hit, and how that is known."""

    pids: tuple[int, ...]
    proof: str


class HostTarget(Protocol):
    """The hard-coded hosts of an agent."""

    async def harm(self, link: str, harm: HostHarm, met: Callable[[str], None]) -> None:
        """Harm the hosts behind a link; `met` gets the proof each time the agent meets it."""

    def heal(self, link: str) -> None:
        """Remove the harm."""


class ServerTarget(Protocol):
    """The tool host's server."""

    async def kill_server(self, number: signal.Signals) -> Hit | None:
        """End it by a signal, or as that signal would; None if there is no server."""

    async def restart_server(self) -> None:
        """Start the server again."""


@dataclass(frozen=True, slots=True)
class Targets:
    """What faults can hit in a run; a process that handles a signal has `grace_s` to end by it."""

    processes: ProcessTargets = field(default_factory=ProcessTargets)
    sessions: SessionFileTargets = field(default_factory=SessionFileTargets)
    disk: Callable[[], Disk | None] = lambda: None
    grace_s: float = 5.0
    server: Callable[[], ServerTarget | None] = lambda: None
    hosts: Callable[[], HostTarget | None] = lambda: None
    databases: Callable[[], Databases | None] = lambda: None
