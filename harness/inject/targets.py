"""Whom faults on processes hit: the run that owns the agent says where its processes and its sessions are."""

import signal
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass
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


KillServer = Callable[[signal.Signals], Awaitable[Hit | None]]
"""Ends the tool host's server by a signal, or as that signal would; None where nobody was there to be hit."""
