"""The files of the project in which the agent works: written for it, and looked at after each turn."""

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.record.events.files import FileSeen, FilesSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.project_file import RULES_FILES, ProjectFileConfig


@dataclass
class ProjectFolder:
    """The files that a scenario names, in one run; `context` returns where the agent is, once that is known.

    `workdir` is the folder that is copied to the agent's; what stands there already stays.
    """

    scenario: Scenario
    context: Callable[[], AgentContext]
    history: History
    workdir: Path | None = None
    _names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Collect the names."""
        self._names = self.scenario.files_named

    def write(self, turn: int) -> None:
        """Write the files that are there before a turn (0: before the first one), and look at all."""
        if turn == 0 and self.scenario.rules:
            self._add_rules()
        given = self.scenario.files if turn == 0 else self.scenario.turns[turn - 1].files
        if not self._names or (turn and not given):
            return
        self._write(given)
        self._look(max(0, turn - 1), tuple(given) if turn else ())

    def look(self, turn: int) -> None:
        """Record what stands in the files when a turn is over."""
        if self._names:
            self._look(turn, ())

    def _look(self, turn: int, by_user: tuple[str, ...]) -> None:
        files = tuple(self._seen(name) for name in self._names)
        self.history.add(FilesSeen(turn=turn, files=files, by_user=by_user))

    def _add_rules(self) -> None:
        """Put the rules into each file that agents read them from, behind those of the spec's own folder."""
        for name in RULES_FILES:
            path, own = self._path(name), self.workdir / name if self.workdir is not None else None
            text = own.read_text("utf-8") if own is not None and own.is_file() else ""
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n# Rules of this project\n\n{self.scenario.rules}\n", "utf-8")

    def _seen(self, name: str) -> FileSeen:
        """A file, and which one it is a link to."""
        path = self._path(name)
        found = seen(path, name)
        if not path.is_symlink():
            return found
        end = path.resolve()
        leads_to = (it for it in self._names if it != name and self._path(it).resolve() == end)
        return replace(found, link_to=next(leads_to, "?"))

    def _path(self, name: str) -> Path:
        context = self.context()
        return context.outside(context.cwd / name)

    def _write(self, given: Mapping[str, ProjectFileConfig]) -> None:
        for name, config in given.items():
            path = self._path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            if config.kind == "folder":
                path.mkdir(exist_ok=True)
            elif config.kind == "pipe":
                os.mkfifo(path)
            elif config.link_to:
                path.unlink(missing_ok=True)
                path.symlink_to(os.path.relpath(self._path(config.link_to), path.parent))
            else:
                path.write_bytes(config.content)
                if config.executable:
                    path.chmod(0o755)


def seen(path: Path, name: str) -> FileSeen:
    """What stands in a file now."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return FileSeen.of(name, path.read_bytes(), executable=bool(mode & stat.S_IXUSR))
    except (FileNotFoundError, NotADirectoryError):
        return FileSeen(name, "missing")
    except OSError:
        pass
    return FileSeen(name, "other")
