"""What really runs: read from the command line and the files it names, without running anything."""

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, distributions
from pathlib import Path

INTERPRETERS = re.compile(r"(python|pypy|node|bun|deno|ruby|perl|bash|sh|dash|zsh)[\d.]*")
_TAKE_A_VALUE = {"-W", "-X", "-r", "--require", "--import", "-I", "--loader"}
"""Interpreter options whose value is the next argument."""


@dataclass(frozen=True, slots=True)
class Started:
    """One command line and what stands behind it."""

    argv: tuple[str, ...]
    executable: str
    """The real path of the program, links followed; the bare name where no such program is found."""
    version: str | None = None
    """Of the installed package that the entry belongs to."""
    entry: str | None = None
    """The file that is the agent: a script, or the binary itself."""
    entry_hash: str | None = None
    """Its sha256."""
    pid: int | None = None


def what_runs(argv: Sequence[str], cwd: Path, path: str | None = None, pid: int | None = None) -> Started:
    """What `argv` would run in `cwd`, programs looked up in `path` (default: our PATH)."""
    program = shutil.which(argv[0] if "/" not in argv[0] else str(cwd / argv[0]), path=path)
    if program is None:
        return Started(tuple(argv), argv[0], pid=pid)
    executable = Path(program).resolve()
    entry, version = executable, None
    if INTERPRETERS.fullmatch(executable.name):
        script, version = _script(argv[1:], cwd, Path(program))
        entry = script or executable
    version = version or _version(entry, Path(program))
    return Started(tuple(argv), str(executable), version, str(entry), sha256(entry), pid)


def what_imports(target: str, folders: Sequence[str]) -> Started:
    """What `module:function` (or `file.py:function`) is, found in `folders` or this Python, without importing it."""
    name = target.rpartition(":")[0]
    entry = Path(name) if name.endswith(".py") else _module(name, [*folders, *sys.path])
    version = None if name.endswith(".py") else _version_of_module(name, sys.path)
    return Started((target,), sys.executable, version, str(entry) if entry else None, sha256(entry) if entry else None)


def sha256(file: Path) -> str | None:
    """The hash of a file's content; None where it cannot be read."""
    with suppress(OSError), file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
    return None


def _script(arguments: Sequence[str], cwd: Path, python: Path) -> tuple[Path | None, str | None]:
    """The file that an interpreter is told to run, and for `-m` its package's version."""
    rest = iter(arguments)
    for argument in rest:
        if argument == "-m":
            module, folders = next(rest, ""), [str(cwd), *map(str, _site_packages(python))]
            return _module(module, folders, main=True), _version_of_module(module, folders)
        if argument in ("-c", "-e", "--eval"):
            return None, None
        if argument in _TAKE_A_VALUE:
            next(rest, None)
        elif not argument.startswith("-"):
            script = cwd / argument
            return (script.resolve(), None) if script.is_file() else (None, None)
    return None, None


def _module(name: str, folders: Sequence[str], *, main: bool = False) -> Path | None:
    """A module's file. Looking one part up at a time imports none of them, which find_spec for the whole name would."""
    where: Sequence[str] | None = folders
    spec = None
    for index, _ in enumerate(parts := name.split(".")):
        spec = PathFinder.find_spec(".".join(parts[: index + 1]), where)
        if spec is None:
            return None
        where = spec.submodule_search_locations or []
    if main and where:
        return _module(f"{name}.__main__", folders)
    return Path(spec.origin) if spec and spec.origin else None


def _version(entry: Path, program: Path) -> str | None:
    """Of the npm package around `entry`, or of the Python package that installed it as a command."""
    return _npm_version(entry) or _version_of_command(program)


def _npm_version(entry: Path) -> str | None:
    for folder in entry.parents:
        if folder.parent.name == "node_modules" or folder.parent.parent.name == "node_modules":
            with suppress(OSError, ValueError, AttributeError):
                return str(json.loads((folder / "package.json").read_text(encoding="utf-8"))["version"])
    return None


def _version_of_command(program: Path) -> str | None:
    for package in _installed(_site_packages(program)):
        if any(point.group == "console_scripts" and point.name == program.name for point in package.entry_points):
            return package.version
    return None


def _version_of_module(name: str, folders: Sequence[str]) -> str | None:
    top = name.split(".", maxsplit=1)[0]
    for package in _installed([Path(folder) for folder in folders if folder.endswith("-packages")]):
        if any(file.parts[0] in (top, f"{top}.py") for file in package.files or ()):
            return package.version
    return None


def _installed(folders: Sequence[Path]) -> Iterator[Distribution]:
    return iter(distributions(path=[str(folder) for folder in folders])) if folders else iter(())


def _site_packages(program: Path) -> list[Path]:
    """Of the environment in whose bin/ the program lies, links not followed: a venv's python is a link."""
    return sorted(program.absolute().parent.parent.glob("lib/python3*/site-packages"))
