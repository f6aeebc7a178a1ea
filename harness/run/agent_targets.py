"""Whom a fault on processes hits in a run: the agent's processes and session files, as they are when it strikes."""

import hashlib
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import psutil

from wedgehog.harness.agents.base import AgentContext, DeliveredSignal, Session
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.surroundings import files_like, session_patterns
from wedgehog.harness.faults.process_fault import Whom
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.event import SessionSaved
from wedgehog.harness.record.history import History
from wedgehog.harness.run.session_record import results_in
from wedgehog.harness.sandbox.cleanup import carrying
from wedgehog.harness.sandbox.signals import tree

SQLITE = b"SQLite format 3"


@dataclass
class AgentAim:
    """The processes of a run's agent; `sessions` are open: the second one speaks while the first one does."""

    mark: str
    clock: Clock
    sessions: list[Session] = field(default_factory=list)

    @property
    def leaders(self) -> frozenset[int]:
        """Pids of the agent's own processes: somebody waits for their ends."""
        return frozenset(session.leader.pid for session in self.sessions if session.leader is not None)

    def find(self, whom: Whom, token: str) -> Iterator[psutil.Process]:
        """Those that live now; a tree's leader comes first, and is hit before the rest is looked for."""
        if whom == "tool":
            yield from self._tool(token)
        for pid in self.leaders if whom in ("tree", "leader") else ():
            found = tree(pid)
            yield from found if whom == "tree" else [process for process in found if process.pid == pid]

    def struck(self, number: signal.Signals, grace_s: float) -> None:
        """Tell every session whose process it was."""
        for session in self.sessions:
            session.signalled(DeliveredSignal(number, self.clock.now() + grace_s))

    def _tool(self, token: str) -> Iterator[psutil.Process]:
        """The youngest shell that was given the scripted command, wherever it ran away to, and all below it."""
        shells = [process for process in carrying(self.mark) if token and _runs(process, token)]
        if shells:
            youngest = max(shells, key=lambda process: (process.create_time(), process.pid))
            yield youngest
            yield from youngest.children(recursive=True)


def _runs(process: psutil.Process, token: str) -> bool:
    with suppress(psutil.Error):
        return any(f"printf '{token} started" in word for word in process.cmdline())
    return False


@dataclass
class SessionWatch:
    """The session files of a run's agent."""

    spec: AgentSpec
    place: AgentContext
    history: History
    salt: str
    """With which the tokens begin that scripted commands print."""
    kept: Path
    """The run's folder."""
    saved: int = 0

    @cached_property
    def _patterns(self) -> list[Path]:
        return session_patterns(self.spec, self.place)

    def files(self) -> list[Path]:
        """Those that the spec names; where it names none, all in its session folder."""
        if self.spec.session_files:
            return files_like(self._patterns, self.place)
        return sorted(path for path in self.place.outside(self.place.session_dir).rglob("*") if path.is_file())

    def look(self) -> Sequence[tuple[str, int, int, int]]:
        """What differs whenever one is written."""
        return list(_signatures(self.files()))

    def save(self, turn: int, *, tear: bool) -> bool:
        """Keep a copy of each; with `tear`, of what is left of the youngest one. Whether all that could be done."""
        files = self.files()
        torn = torn_of(files) if tear else None
        self.saved += 1
        for file in files:
            with suppress(OSError):
                self._keep(turn, file, torn=file == torn)
        return torn is not None or not tear

    def _keep(self, turn: int, file: Path, *, torn: bool) -> None:
        data = file.read_bytes()
        path = Path(f"session-at-kill-{self.saved}") / name_of(file, self.place)
        (self.kept / path).parent.mkdir(parents=True, exist_ok=True)
        (self.kept / path).write_bytes(data)
        self.history.add(
            SessionSaved(
                turn=turn,
                path=str(path),
                sha256=hashlib.sha256(data).hexdigest(),
                size=len(data),
                results=results_in(data, self.salt, torn=torn),
                torn=torn,
            )
        )


def name_of(file: Path, place: AgentContext) -> Path:
    """A file's path from the run's own folder, wherever it is for us; its bare name where it is not in it."""
    home = place.home.parent
    for folder in (home, place.outside(place.home).parent):
        if file.is_relative_to(folder):
            return file.relative_to(folder)
    return Path(file.name)


def _signatures(files: Iterable[Path]) -> Iterator[tuple[str, int, int, int]]:
    for file in files:
        with suppress(OSError):
            seen = file.stat()
            yield str(file), seen.st_ino, seen.st_mtime_ns, seen.st_size


def torn_of(files: Iterable[Path]) -> Path | None:
    """Take half of the last line of the file that was written last; which that was, None where none can be torn.

    Only lines of text can be torn like that: a database has its own ways to live through a crash.
    """
    lines = [file for file in files if _has_lines(file)]
    if not lines:
        return None
    file = max(lines, key=lambda path: path.stat().st_mtime_ns)
    data = file.read_bytes()
    begin = data.rstrip(b"\n").rfind(b"\n") + 1
    with file.open("r+b") as open_:
        open_.truncate(begin + (len(data.rstrip(b"\n")) - begin) // 2)
    return file


def _has_lines(file: Path) -> bool:
    with suppress(OSError, UnicodeDecodeError):
        data = file.read_bytes()
        return bool(data.strip()) and not data.startswith(SQLITE) and bool(data.decode("utf-8"))
    return False
