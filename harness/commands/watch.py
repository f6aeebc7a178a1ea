"""`wedgehog run --watch`: play again after each change of a file."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

import typer

from wedgehog.harness.commands.console import INTERRUPTED, err

FLAG: Final = "--watch"
WATCHED: Final = frozenset(
    {".cjs", ".cs", ".ex", ".go", ".j2", ".java", ".jinja", ".js", ".kt", ".lua", ".md", ".mjs", ".php", ".pl", ".py"}
    | {".rb", ".rs", ".scala", ".sh", ".swift", ".toml", ".ts", ".tsx", ".txt", ".yaml", ".yml"}
)
"""The suffixes of files that people edit. An agent may write others, such as its sessions, beside its program."""
UNWATCHED: Final = frozenset(
    {"__pycache__", "build", "dist", "node_modules", "runs", "site-packages", "target", "venv"}
)
MARKS: Final = frozenset({"campaign.json", "pyvenv.cfg"})
"""What the folder of a campaign, or of a Python environment, has in it."""
_POLL_S: Final = 0.5
_SHOWN: Final = 3

Times = Mapping[Path, int]
"""When each watched file was written last, in nanoseconds."""


def watch(words: Iterable[str], out: Path) -> NoReturn:
    """Run this command again and again, each time in a new process; Ctrl-C ends it with code 130."""
    folders = folders_of(words)
    look = partial(times, folders, out)
    command = [sys.executable, "-P", "-m", "wedgehog", *(word for word in sys.argv[1:] if word != FLAG)]
    known: set[Path] = set()
    try:
        while True:
            before = look()
            _play(command)
            after = look()
            written = changes(before, after)
            changed = edits(written, before, after, known)
            known.update(written)
            if not changed:
                _say_written(written)
                err.print("wedgehog: waiting for a change of a file (Ctrl-C ends)", markup=False)
                changed = first_change(settled(after, known, look), look)
                known.difference_update(changed)
            err.print(f"wedgehog: changed: {_named(changed)}", markup=False, soft_wrap=True)
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None


def folders_of(words: Iterable[str]) -> tuple[Path, ...]:
    """Return the working folder, and the folders of the scenarios and specs that lie elsewhere."""
    here = Path.cwd()
    given = [Path(word.partition("@")[0]).resolve() for word in words]
    found = dict.fromkeys(path if path.is_dir() else path.parent for path in given if path.exists())
    return here, *(folder for folder in found if not folder.is_relative_to(here))


def times(folders: Iterable[Path], out: Path) -> Times:
    """Return the times of all watched files; the folder `out` is left out."""
    return {path: _written(path) for folder in folders for path in source_files(folder, out.resolve())}


def first_change(before: Times, look: Callable[[], Times], wait: Callable[[float], None] = time.sleep) -> list[Path]:
    """Wait until a file is written, made or removed; return all such files."""
    while (now := look()) == before:
        wait(_POLL_S)
    return changes(before, now)


def changes(before: Times, now: Times) -> list[Path]:
    """Return the files that were written, made or removed."""
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def edits(written: Iterable[Path], before: Times, after: Times, known: Collection[Path]) -> list[Path]:
    """Return the files written during a run that a person may have edited.

    An agent may write any file: one that is new or gone, or that an earlier run wrote too, is taken as its own.
    """
    return [path for path in written if path in before and path in after and path not in known]


def settled(after: Times, known: Collection[Path], look: Callable[[], Times]) -> Times:
    """Return the times, with newer ones for files that runs write: one may be a log of what this command just said."""
    time.sleep(_POLL_S)
    now = look()
    return {path: now.get(path, at) if path in known else at for path, at in after.items()}


def source_files(folder: Path, out: Path | None = None, endings: Collection[str] = WATCHED) -> Iterator[Path]:
    """Yield the files below a folder that people edit; the folder `out`, campaigns and environments are left out."""
    for place, folders, names in os.walk(folder):
        if MARKS & set(names):
            folders.clear()
            continue
        folders[:] = [name for name in folders if name[0] != "." and name not in UNWATCHED and Path(place, name) != out]
        yield from (path for name in names if (path := Path(place, name)).suffix in endings)


def _written(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:  # it was removed in this moment
        return 0


def _play(command: list[str]) -> None:
    """Run a command to its end; after Ctrl-C wait for its cleanup."""
    process = subprocess.Popen(command)
    try:
        process.wait()
    except KeyboardInterrupt:
        process.wait()
        raise


def _say_written(paths: list[Path]) -> None:
    """Name what was written during a run and is taken as the agent's."""
    if paths:
        said = f"changed during the run: {_named(paths)} (if this was your edit, save the file again)"
        err.print(f"wedgehog: {said}", markup=False, soft_wrap=True)


def _named(changed: list[Path]) -> str:
    names = [os.path.relpath(path) for path in changed[:_SHOWN]]
    return ", ".join(names) + (f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else "")
