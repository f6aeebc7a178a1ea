"""Find programs, scripts, modules and packages of a spec that do not exist, before anything is started."""

import ast
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path

from wedgehog.harness.agents.backend_links import check_backends
from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.callables.callable_python import check_pythons
from wedgehog.harness.agents.callables.python_probe import imports
from wedgehog.harness.agents.command_lines import command_lines, filled, search_path
from wedgehog.harness.agents.opening import missing_package
from wedgehog.harness.agents.spec import AgentSpec, folder_of
from wedgehog.harness.agents.spec_checks import lost_message
from wedgehog.harness.sandbox.started import INTERPRETERS, what_imports
from wedgehog.harness.scenario import document
from wedgehog.harness.scenario.mistake import Mistake

_UNSEEN = re.compile(r"import\s*\(?\s*\*|__getattr__|globals\(|exec\(|setattr\(")
"""What gives a module names that stand nowhere in its file."""
SOURCE = re.compile(r"[\w./~-]+\.(py|js|mjs|cjs|ts|mts|sh|pl|rb|php|lua|jl|R|jar)")
"""A file that an interpreter runs."""


class ProgramError(AgentError, ValueError):
    """Agents cannot be started: a line for each."""


def check_agents(specs: Iterable[AgentSpec]) -> None:
    """Look for what each agent is started with, and for the servers behind its `links`.

    Errors: ProgramError; PythonError if a callable cannot run in the Python that its spec names; BackendError if a
    server does not answer.
    """
    known = {spec.path: spec for spec in specs}.values()
    if missing := list(filter(None, map(what_is_missing, known))):
        raise ProgramError("\n".join(missing))
    check_pythons(known)
    check_backends(known)


def what_is_missing(spec: AgentSpec) -> str:
    """Name the programs, scripts, modules and packages of a spec that do not exist, and keys that lose the message.

    One line for each, with the line of its key in the spec's file; empty if nothing is missing.
    """
    if says := missing_package(spec):
        return f"{spec.path}: {says}"
    found = missing_files(spec)
    if not found or not spec.path.is_file():
        return "\n".join(f"{spec.path}: {one.said}" for one in found)
    return str(document.load(spec.path).errors(found))


def missing_files(spec: AgentSpec) -> list[Mistake]:
    """Programs, scripts and modules that do not exist, and the keys where the spec's message is lost."""
    return [Mistake(tuple(key.split(": ")), f"{key}: {says}") for key, says in _missing(spec)]


def _missing(spec: AgentSpec) -> Iterator[tuple[str, str]]:
    """What no run can change, by the key. A file that a run makes in its own folders is not known yet."""
    for key, line in command_lines(spec).items():
        words = [filled(part, spec) for part in line]
        new = "resume" not in key and key != "wake_up"
        yield from ((key, says) for says in _gone(words, spec, new=new))
    if spec.callable and spec.python is None:
        yield from (("callable", says) for says in _lacking(spec.callable, spec))
    yield from ((": ".join(map(str, place)), says) for place, says in lost_message(spec))


def _gone(words: Sequence[str], spec: AgentSpec, *, new: bool) -> Iterator[str]:
    """Programs and files of a command line that do not exist; `new`: it is the first one in its working folder."""
    program, *rest = words
    if "{" not in program and (searched := _searched_in_vain(program, spec, new=new)) is not None:
        yield f"there is no program {program!r}{searched}"
    if not INTERPRETERS.fullmatch(Path(program).name):
        return
    script = next((part for part in rest if not part.startswith("-")), "")
    if Path(script).is_absolute():
        if "{" not in script and not Path(script).is_file():
            yield f"there is no file {script!r}"
    elif new and rest[:1] == [script] and SOURCE.fullmatch(script) and not _comes_with(script, spec):
        yield f"there is no file {script!r}{_in_working_folder(script, spec)}"


def _searched_in_vain(program: str, spec: AgentSpec, *, new: bool) -> str | None:
    """Where a program was not found, as words; None if it was found, or if only the run can show it."""
    if Path(program).is_absolute():
        exists = ": this file is not executable" if Path(program).is_file() else ""
        return None if shutil.which(program) else exists
    if os.sep in program:
        return _in_working_folder(program, spec) if new and not _comes_with(program, spec) else None
    path = search_path(spec)
    return None if "{" in path or shutil.which(program, path=path) else f" in {path}"


def _comes_with(file: str, spec: AgentSpec) -> bool:
    """Whether a relative file may be in the agent's working folder when it is started the first time."""
    copied = folder_of(spec)
    return bool(spec.files) or (copied is not None and (copied / file).exists())


def _in_working_folder(file: str, spec: AgentSpec) -> str:
    name = file.removeprefix("./")
    hint = f": write {{here}}/{name}" if (spec.here / name).is_file() else "; {here} is the folder of this file"
    return f" in the agent's working folder, which is new in each run{hint}"


def _lacking(target: str, spec: AgentSpec) -> Iterator[str]:
    """What our own Python lacks for a callable: its module, a package that its file always imports, or the function."""
    name, _, function = filled(target, spec).rpartition(":")
    elsewhere = "PYTHONPATH" in {*spec.env, *spec.inherit_env}
    file = name if name.endswith(".py") else what_imports(f"{name}:{function}", [str(spec.here)]).entry
    if file is None or (Path(file).is_absolute() and "{" not in file and not Path(file).is_file()):
        if file is not None or not elsewhere:
            yield f"there is no module {name!r}"
    elif not elsewhere:
        with suppress(OSError, SyntaxError, ValueError):  # the first call of the function shows it
            yield from _absent(file, function, spec.here)


def _absent(file: str, function: str, here: Path) -> Iterator[str]:
    for module, line in imports(file):
        if find_spec(module) is None and PathFinder.find_spec(module, [str(here)]) is None:
            yield f"there is no module {module!r}, which {file}:{line} imports"
    source = Path(file).read_text("utf-8", "replace")
    named = re.search(rf"\b{re.escape(function.partition('.')[0])}\b", source)
    ast.parse(source)
    if not named and not _UNSEEN.search(source):
        yield f"{file} has no {function!r}"
