"""Find programs, scripts and modules of a spec that do not exist, before anything is started."""

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from wedgehog.harness.agents.runtime_install import bin_of, path_of
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.started import INTERPRETERS, what_imports


def what_is_missing(spec: AgentSpec) -> str:
    """Name the spec's program, script or module that does not exist, empty without one; the rest a run can show."""
    return next((f"{spec.path}: {says}" for says in _missing(spec)), "")


def _missing(spec: AgentSpec) -> Iterator[str]:
    lines = {"command": spec.command, "resume": spec.resume, "wake_up": spec.wake_up}
    parts = {key: getattr(spec, key) for key in ("http", "chat", "lines", "acp", "tui")}
    for step in ("start", "resume"):
        lines |= {f"{key}: {step}": getattr(part, step, None) for key, part in parts.items()}
    for key, line in lines.items():
        program, *rest = [_filled(part, spec) for part in line or ("",)]
        if program and "{" not in program and (searched := _searched_in_vain(program, spec)) is not None:
            yield f"{key}: there is no program {program!r}{searched}"
        script = next((part for part in rest if not part.startswith("-")), "")
        if INTERPRETERS.fullmatch(Path(program).name) and _is_gone(script):
            yield f"{key}: there is no file {script!r}"
    if spec.callable and spec.python is None and not _can_be_imported(_filled(spec.callable, spec), spec):
        yield f"callable: there is no module {spec.callable.rpartition(':')[0]!r}"


def _filled(part: str, spec: AgentSpec) -> str:
    values = {"python": sys.executable, "here": str(spec.here)}
    if spec.runtime and spec.install:
        values |= {"bin": str(bin_of(spec.install, spec.runtime)), "install": str(spec.install)}
    for name, value in values.items():
        part = part.replace("{" + name + "}", value)
    return part


def _is_gone(file: str) -> bool:
    return "{" not in file and Path(file).is_absolute() and not Path(file).is_file()


def _searched_in_vain(program: str, spec: AgentSpec) -> str | None:
    """The folders in which a program was not found; None if it was found, or if only the run can show it."""
    if os.sep in program:
        return "" if Path(program).is_absolute() and shutil.which(program) is None else None
    own = path_of(spec.install, spec.runtime) if spec.runtime and spec.install else ()
    path = os.pathsep.join([*map(str, own), os.environ.get("PATH", os.defpath)])
    return None if "PATH" in spec.env or shutil.which(program, path=path) else f" in {path}"


def _can_be_imported(target: str, spec: AgentSpec) -> bool:
    name = target.rpartition(":")[0]
    if name.endswith(".py"):
        return not _is_gone(name)
    elsewhere = "PYTHONPATH" in {*spec.env, *spec.inherit_env}
    return elsewhere or what_imports(target, [str(spec.here)]).entry is not None
