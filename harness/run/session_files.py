"""The session files of a run's agent: what is planted, torn and kept, and the tool results that they hold."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.surroundings import files_like, plant, session_files, session_patterns
from wedgehog.harness.inject.targets import SessionFileTargets
from wedgehog.harness.record.by_session import turn_of
from wedgehog.harness.record.events.run import Note, SessionKept, SessionPlanted
from wedgehog.harness.record.events.turn import MAIN_SESSION, SessionSaved, StimulusGiven
from wedgehog.harness.record.history import History
from wedgehog.harness.sandbox.database_locks import SQLITE, is_database

NEVER_TORN = "The agent replaces its session file whole, so the kill left no half line in it."
A_DATABASE = "The agent's session is a database, which a crash does not tear, so the kill left no half line in it."
MOST_HELD = 64


@dataclass
class SessionFiles(SessionFileTargets):
    """The agent's session files in one run; `context` returns where the agent is, once that is known."""

    spec: AgentSpec
    context: Callable[[], AgentContext]
    history: History
    salt: str
    """The beginning of the tokens that scripted commands print."""
    kept: Path
    """The run's folder, to which copies go."""
    beside: Path = Path()
    """The folder of the files to plant."""
    session_of: Callable[[int], str] = lambda turn: MAIN_SESSION
    """The name of the session of a turn."""
    contexts: Callable[[], Mapping[str, AgentContext]] = dict
    """Returns where each session is, if there are several."""
    saved: int = 0
    _known_patterns: dict[str, list[Path]] = field(default_factory=dict)
    _seen: dict[Path, tuple[int, int]] = field(default_factory=dict)
    """The inode and the size of each file when it was last looked at."""
    _held: dict[Path, int] = field(default_factory=dict)
    """Descriptors of files that replaced another one."""
    _replaced: set[Path] = field(default_factory=set)
    """Files in whose place another one was put: a reader finds the old or the new one, never a part."""

    def plant(self, turn: int, name: str | None) -> None:
        """Append a file that lies beside the scenario to the agent's session."""
        self.look()
        if name is None:
            return
        lines, context = (self.beside / name).read_bytes(), self.context()
        path = str(plant(self.spec, context, lines).relative_to(context.folder.absolute()))
        self.history.add(SessionPlanted(turn=turn, path=path, lines=len(lines.splitlines()), sha256=_sha256(lines)))

    def keep(self) -> None:
        """Copy the session files at the end of the run."""
        for file in dict.fromkeys(it for context in self._contexts() for it in session_files(self.spec, context)):
            data, name = file.read_bytes(), name_of(file, self.context())
            _write(self.kept / "session" / name, data)
            self.history.add(SessionKept(path=str(name), sha256=_sha256(data), size=len(data)))
        while self._held:
            os.close(self._held.popitem()[1])

    def look(self) -> Sequence[tuple[str, int, int, int]]:
        """A value that changes whenever one of the files is written."""
        found = []
        for file in dict.fromkeys(it for context in self._contexts() for it in self._files(context)):
            with suppress(OSError):
                seen = file.stat()
                self._compare(file, seen)
                found.append((str(file), seen.st_ino, seen.st_mtime_ns, seen.st_size))
        return found

    def _compare(self, file: Path, seen: os.stat_result) -> None:
        """Note whether a file was replaced, or has grown since: an agent may replace it at load, and append then."""
        inode, size = self._seen.get(file, (seen.st_ino, seen.st_size))
        self._seen[file] = seen.st_ino, seen.st_size
        if inode != seen.st_ino:
            self._replaced.add(file)
            self._hold(file)
        elif file in self._held and seen.st_size > size:
            self._replaced.discard(file)

    def _hold(self, file: Path) -> None:
        """Open a new file, so that the one that replaces it has another inode."""
        if file in self._held:
            os.close(self._held.pop(file))
        if len(self._held) < MOST_HELD:
            self._held[file] = os.open(file, os.O_RDONLY | os.O_CLOEXEC)

    def save(self, turn: int, *, tear: bool) -> bool:
        """Copy each file of the turn's session; with `tear`, what is left of the youngest one.

        Returns whether all that could be done. A database, and a file that the agent replaces whole, stay as they are:
        no crash tears them. A file that may belong to another session is not torn. If some files have messages, those
        without one are not torn either: half of a pid in a lock file would name another process.
        """
        self.look()
        mine = self._context_of(turn)
        files = self._files(mine)
        others = {file for context in self._contexts() if context is not mine for file in self._files(context)}
        spoken = {file for file in files if self._has_a_message(file)}
        whole_ones = self._replaced | others | ({*files} - spoken if spoken else set())
        torn = torn_of([file for file in files if file not in whole_ones]) if tear else None
        whole = self._why_never_torn(files) if tear and torn is None else ""
        if whole:
            self.history.add(Note(what=whole))
        self.saved += 1
        for file in files:
            with suppress(OSError):
                self._save(turn, file, torn=file == torn)
        return torn is not None or bool(whole) or not tear

    def _has_a_message(self, file: Path) -> bool:
        with suppress(OSError):
            data = file.read_bytes()
            return any(it.marker.encode() in data for it in self.history.of(StimulusGiven) if it.marker)
        return False

    def _why_never_torn(self, files: Sequence[Path]) -> str:
        if self._replaced:
            return NEVER_TORN
        return A_DATABASE if any(map(is_database, files)) else ""

    def _patterns(self, context: AgentContext) -> list[Path]:
        if context.session not in self._known_patterns:
            self._known_patterns[context.session] = session_patterns(self.spec, context)
        return self._known_patterns[context.session]

    def _contexts(self) -> Collection[AgentContext]:
        return self.contexts().values() or (self.context(),)

    def _context_of(self, turn: int) -> AgentContext:
        return self.contexts().get(self.session_of(turn)) or self.context()

    def _files(self, context: AgentContext) -> list[Path]:
        """Those that the spec names; where it names none, all in its session folder.

        What a database that is open has not yet taken in stands in a file beside it (SQLite's WAL).
        """
        if self.spec.session_files:
            named = files_like(self._patterns(context), context)
            beside = (file.with_name(f"{file.name}-wal") for file in named)
            return [*named, *(file for file in beside if file not in named and file.is_file())]
        return sorted(path for path in context.outside(context.session_dir).rglob("*") if path.is_file())

    def _save(self, turn: int, file: Path, *, torn: bool) -> None:
        data = file.read_bytes()
        path = Path(f"session-at-kill-{self.saved}") / name_of(file, self.context())
        _write(self.kept / path, data)
        mine, found = self.session_of(turn), results_in(data, self.salt, torn=torn)
        results = tuple(token for token in found if self.session_of(turn_of(token)) == mine)
        self.history.add(
            SessionSaved(turn=turn, path=str(path), sha256=_sha256(data), size=len(data), results=results, torn=torn)
        )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)


def name_of(file: Path, context: AgentContext) -> Path:
    """A file's path from the run's folder, inside or outside the agent's disk; its bare name if it is elsewhere."""
    home = context.home.parent
    for folder in (home, context.outside(context.home).parent):
        if file.is_relative_to(folder):
            return file.relative_to(folder)
    return Path(file.name)


def torn_of(files: Sequence[Path]) -> Path | None:
    """Cut half of the last line off the youngest file of text lines (a database survives a crash); None without one."""
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


# ---- the tool results in a session file of any format


def results_in(data: bytes, salt: str, *, torn: bool = False) -> tuple[str, ...]:
    r"""turn.step.call of the commands whose output stands in a file; a command that is only asked for does not count.

    A command prints its token last, and its call's id begins with it. What cannot be read again does not count:
    a last line that was cut, or the whole of one JSON text whose end was cut off (`torn`).

    >>> results_in(b'{"role": "tool", "content": "21 C\\nwbcdf1x2x1"}\n', "wbcdf")
    ('1.2.1',)
    """
    text = data.decode("utf-8", "replace")
    if not _is_json(text):
        text = "" if torn and _is_one_json_text(text) else _whole_lines(text)
    found = re.findall(rf"{re.escape(salt)}(\d+)x(\d+)x(\d+)(?!\d|a\d|; \(exit)", text)
    return tuple(dict.fromkeys(".".join(numbers) for numbers in found))


def _whole_lines(text: str) -> str:
    """Without a last line that has no end, unless that is whole JSON. A database has no lines, and is whole."""
    begin = text.rfind("\n") + 1
    if "\0" in text or _is_json(text[begin:]):
        return text
    return text[:begin]


def _is_one_json_text(text: str) -> bool:
    """Whether it begins as JSON of several lines."""
    first = text.lstrip().partition("\n")[0]
    return first[:1] in ("{", "[") and not _is_json(first)


def _is_json(text: str) -> bool:
    with suppress(ValueError, RecursionError):
        json.loads(text)
        return True
    return False
