"""The Python in which a callable runs: ours, or one of the user's own (`python`), which needs no package of ours."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.started import Started, sha256, what_imports
from wedgehog.harness.scenario import document
from wedgehog.harness.scenario.document import BadFileError

PROBE = Path(__file__).with_name("python_probe.py")
OLDEST = (3, 9)
ANSWERS_WITHIN_S = 30


class PythonError(AgentError, ValueError):
    """A callable cannot run in the Python that its spec names; one line, with the file and the line."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What another Python found, or why a callable cannot run in it."""

    wrong: str = ""
    path: tuple[str, ...] = ()
    file: str | None = None
    missing: tuple[tuple[str, int], ...] = ()


def python_of(spec: AgentSpec) -> str:
    """The program that runs the function. A link is kept: the `python` of a virtual environment is one."""
    if spec.python is None:
        return sys.executable
    named = spec.python.replace("{here}", str(spec.here))
    return os.path.abspath(named) if "/" in named else shutil.which(named) or named  # noqa: PTH100  keeps the link


def check_pythons(specs: Iterable[AgentSpec]) -> None:
    """Ask each Python that a spec names before anything is started. Errors: PythonError."""
    for spec in {spec.path: spec for spec in specs}.values():
        if spec.python is not None:
            _asked(spec)


def started_in(spec: AgentSpec, target: str) -> Started:
    """The file behind a callable, as its own Python finds it. Errors: PythonError."""
    if spec.python is None:
        return what_imports(target, [str(spec.here)])
    answer = _asked(spec)
    found = what_imports(target, [str(spec.here)], python=python_of(spec), path=answer.path)
    return replace(found, entry=answer.file, entry_hash=sha256(Path(answer.file))) if answer.file else found


def _asked(spec: AgentSpec) -> _Answer:
    python, target = python_of(spec), (spec.callable or "").replace("{here}", str(spec.here))
    answer = _answer(python, target, str(spec.here))
    if answer.wrong:
        raise _error(spec, "python", answer.wrong)
    if "PYTHONPATH" in {*spec.env, *spec.inherit_env}:
        return answer
    name = target.rpartition(":")[0]
    if answer.file is None or not Path(answer.file).exists():
        raise _error(spec, "callable", f"there is no module {name!r} in {python}")
    for module, line in answer.missing:
        raise _error(spec, "python", f"{python} has no module {module!r}, which {answer.file}:{line} imports")
    return answer


@cache
def _answer(python: str, target: str, folder: str) -> _Answer:
    if why := _no_program(Path(python)):
        return _Answer(why)
    older = f"expected Python {'.'.join(map(str, OLDEST))} or newer, and {python}"
    try:
        done = _ran([python, str(PROBE), target, folder])
    except (OSError, subprocess.TimeoutExpired) as wrong:
        late = f"no answer within {ANSWERS_WITHIN_S} s"
        return _Answer(f"{older} cannot be run: {wrong.strerror if isinstance(wrong, OSError) else late}")
    said = _read(done.stdout)
    if done.returncode or not said:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return _Answer(f"{older} does not answer as a Python: {last[:200]}")
    if tuple(said["version"]) < OLDEST:
        return _Answer(f"{older} is {'.'.join(map(str, said['version']))}")
    return _Answer("", tuple(said["path"]), said["file"], tuple((name, line) for name, line in said["missing"]))


def _ran(argv: list[str]) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    none = subprocess.DEVNULL
    return subprocess.run(
        argv, check=False, env=env, stdin=none, capture_output=True, errors="replace", timeout=ANSWERS_WITHIN_S
    )


def _no_program(file: Path) -> str:
    if file.is_symlink() and not file.exists():
        return f"{file} is a link to {file.readlink()}, which does not exist"
    if not file.exists():
        return f"there is no file {file}" if file.is_absolute() else f"there is no program {str(file)!r} in PATH"
    if file.is_dir():
        return f"{file} is a folder; expected the Python in it, such as {file / 'bin/python'}"
    return "" if os.access(file, os.X_OK) else f"{file} is not executable"


def _read(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) and {"version", "path", "file", "missing"} <= said.keys() else {}


def _error(spec: AgentSpec, key: str, says: str) -> PythonError:
    try:
        return PythonError(str(document.load(spec.path).error((key,), f"{key}: {says}")))
    except (BadFileError, OSError):
        return PythonError(f"{spec.path}: {key}: {says}")
