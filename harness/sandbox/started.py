"""Find out what a command line really runs, and its source tree, from files; nothing is executed."""

import hashlib
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

INTERPRETERS = re.compile(r"(python|pypy|node|nodejs|bun|deno|ruby|perl|php|bash|sh|dash|zsh|ksh|fish|busybox)[\d.]*t?")
LAUNCHERS = re.compile(
    r"env|timeout|nice|ionice|nohup|setsid|stdbuf|unbuffer|time|taskset|strace|sudo|doas|su|dumb-init|tini|xvfb-run|"
    r"npx|npm|pnpm|yarn|bunx|tsx|ts-node|uvx?|pipx|poetry|hatch|pdm|rye|conda|mamba|mise|asdf|volta|"
    r"docker|podman|make|just|go|cargo|dotnet|java|mvn|gradle|lua|julia|R|Rscript"
)
"""Programs that start another one, or run its code: their file says nothing about the agent."""
_TAKE_A_VALUE = {"-W", "-X", "-r", "--require", "--import", "-I", "--loader", "--env-file", "-o"}
"""Interpreter options whose value is the next argument."""
INSTALLED = frozenset({"site-packages", "dist-packages", "node_modules"})
SHORT = 12
"""Characters of a commit that are shown."""
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_NAMED = re.compile(r"(python|pypy)(\d+\.\d+)")


@dataclass(frozen=True, slots=True)
class Started:
    """One command line and the files behind it."""

    argv: tuple[str, ...]
    executable: str
    """The program's real path, with links resolved; the bare name if the program is not found."""
    version: str | None = None
    """Version of the installed package that the entry belongs to."""
    entry: str | None = None
    """The agent's file: a script, a module or the binary itself; None behind an interpreter's `-c`, or a launcher."""
    entry_hash: str | None = None
    """The sha256 of `entry`."""
    pid: int | None = None
    began_s: float | None = None
    """When the process was started, by the clock of the run."""
    interpreter: str = ""
    """`Python 3.11.7`; empty if there is none, or no file tells."""
    source: str = ""
    """`mine 1.2.0 (pyproject.toml), commit 3f2a9c1d0b7e`, by the files above the entry; empty: no such files."""


def what_runs(argv: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None, pid: int | None = None) -> Started:
    """What `argv` runs in `cwd` with the PATH (default: ours) and the PYTHONPATH of `env`."""
    env = env or {}
    program = shutil.which(argv[0] if "/" not in argv[0] else str(cwd / argv[0]), path=env.get("PATH"))
    if program is None:
        return Started(tuple(argv), argv[0], pid=pid)
    executable = Path(program).resolve()
    names = Path(program).name, executable.name  # `sh` may lead to busybox, and `node` to the shim of a version manager
    if not any(map(INTERPRETERS.fullmatch, names)):
        if any(map(LAUNCHERS.fullmatch, names)):
            return Started(tuple(argv), str(executable), pid=pid)
        version = _npm_version(executable) or _version_of_command(Path(program))
        return Started(tuple(argv), str(executable), version, str(executable), sha256(executable), pid)
    script, version = _script(argv[1:], cwd, Path(program), env.get("PYTHONPATH", ""))
    interpreter = interpreter_of(Path(program))
    if script is None:
        return Started(tuple(argv), str(executable), version, pid=pid, interpreter=interpreter)
    version = version or _npm_version(script) or _version_around(script)
    hashed, source = sha256(script), source_of(script)
    return Started(tuple(argv), str(executable), version, str(script), hashed, pid, None, interpreter, source)


def what_imports(
    target: str, folders: Sequence[str], python: str = sys.executable, path: Sequence[str] = sys.path
) -> Started:
    """The file behind `module:function` or `file.py:function`, found in `folders` or the Python's `path`, not imported.

    The Python is ours unless another one and its `sys.path` are given.
    """
    name = target.rpartition(":")[0]
    entry = Path(name) if name.endswith(".py") else _module(name, [*folders, *path])
    installed = entry is not None and any(entry.is_relative_to(folder) for folder in _of_packages(path))
    version = _version_of_module(name, path) if installed and not name.endswith(".py") else None
    interpreter = interpreter_of(Path(python))
    if entry is None:
        return Started((target,), python, version, interpreter=interpreter)
    source = source_of(entry)
    return Started((target,), python, version, str(entry), sha256(entry), interpreter=interpreter, source=source)


def sha256(file: Path) -> str | None:
    """The hash of a file's content; None if it cannot be read. A binary of 200 MB is read once, until it is written."""
    with suppress(OSError):
        now = file.stat()
        return _sha256(file, now.st_ino, now.st_size, now.st_mtime_ns)
    return None


@lru_cache(maxsize=1024)
def _sha256(file: Path, inode: int, size: int, written_ns: int) -> str:
    del inode, size, written_ns  # a file of which one differs has another text
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _script(arguments: Sequence[str], cwd: Path, python: Path, python_path: str) -> tuple[Path | None, str | None]:
    """The script that an interpreter runs, and for `-m` the version of its package."""
    rest = iter(arguments)
    for argument in rest:
        if argument == "-m":
            more = [str(cwd / folder) for folder in python_path.split(os.pathsep) if folder]
            module, folders = next(rest, ""), [str(cwd), *more, *map(str, _site_packages(python))]
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
    """A module's file. find_spec for a dotted name would import its parents, so each part is looked up alone."""
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


def _npm_version(entry: Path) -> str | None:
    """The version of the npm package around `entry`."""
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
    return _version_of_package(name.split(".", maxsplit=1)[0], _of_packages(folders))


def _version_around(entry: Path) -> str | None:
    """The version of the installed Python package in whose folder the entry lies."""
    for folder in entry.parents:
        if _of_packages([str(folder.parent)]):
            return _version_of_package(folder.name, (str(folder.parent),))
    return None


def _of_packages(folders: Sequence[str]) -> tuple[str, ...]:
    return tuple(folder for folder in folders if folder.endswith("-packages"))


@cache
def _version_of_package(top: str, folders: tuple[str, ...]) -> str | None:
    """Looking through the files of every installed package takes 0.1 s, and a search asks for each of its runs."""
    for package in _installed(list(map(Path, folders))):
        if any(file.parts[0] in (top, f"{top}.py") for file in package.files or ()):
            return package.version
    return None


def _installed(folders: Sequence[Path]) -> Iterator[Distribution]:
    """The packages in these folders; without one `distributions` would look at our own."""
    return iter(distributions(path=[str(folder) for folder in folders])) if folders else iter(())


def _site_packages(program: Path) -> list[Path]:
    """Folders of the environment in whose bin/ the program lies; links are kept, as a venv's python is a link."""
    return sorted(program.absolute().parent.parent.glob("lib/python3*/site-packages"))


def interpreter_of(program: Path) -> str:
    """`Python 3.11.7`, by the environment's pyvenv.cfg, else by the program's name; empty if neither tells."""
    named = _NAMED.fullmatch(program.resolve().name)
    for config in (program.parent.parent / "pyvenv.cfg", program.parent / "pyvenv.cfg"):
        with suppress(OSError):
            found = re.search(r"^version(?:_info)?\s*=\s*(\d[\w.]*)", config.read_text("utf-8"), re.MULTILINE)
            if found:
                return f"Python {found[1]}"
    return f"{'Python' if named[1] == 'python' else 'PyPy'} {named[2]}" if named else ""


def source_of(entry: Path) -> str:
    """The nearest project above the entry, and the commit of the work tree; empty if there is neither.

    An installed package lies in no source tree, though its environment may.
    """
    if INSTALLED.intersection(entry.parts):
        return ""
    project = next(filter(None, map(_project, entry.parents)), "")
    commit = next(filter(None, map(_commit, entry.parents)), "")
    at = f"commit {commit[:SHORT]} (changes since are not looked for)" if commit else ""
    return ", ".join(filter(None, (project, at)))


def _project(folder: Path) -> str:
    """`mine 1.2.0 (pyproject.toml)`; empty without a name and a version."""
    for file, read in (("pyproject.toml", _of_python), ("package.json", json.loads)):
        with suppress(OSError, ValueError, KeyError, TypeError):
            said = read((folder / file).read_text("utf-8"))
            return f"{said['name']} {said['version']} ({file})"
    return ""


def _of_python(text: str) -> Mapping[str, Any]:
    said: Mapping[str, Any] = tomllib.loads(text)["project"]
    return said


def _commit(folder: Path) -> str:
    """The commit that is checked out in this folder; empty if it is no work tree."""
    git = folder / ".git"
    with suppress(OSError, ValueError):
        if git.is_file():
            git = folder / git.read_text("utf-8").removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text("utf-8").strip()
        common = git / (git / "commondir").read_text("utf-8").strip() if (git / "commondir").is_file() else git
        found = _reference(head.removeprefix("ref:").strip(), git, common) if head.startswith("ref:") else head
        return found if _COMMIT.fullmatch(found) else ""
    return ""


def _reference(name: str, git: Path, common: Path) -> str:
    for place in (git, common):
        with suppress(OSError):
            return (place / name).read_text("utf-8").strip()
    lines = (common / "packed-refs").read_text("utf-8").splitlines()
    return next((line.split()[0] for line in lines if line.endswith(f" {name}")), "")
