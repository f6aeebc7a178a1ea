"""The files that agents run, found from their specs before anything is started."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from wedgehog.harness.agents.callables.callable_python import started_in
from wedgehog.harness.agents.command_lines import command_lines, filled, search_path
from wedgehog.harness.agents.spec import AgentSpec, folder_of
from wedgehog.harness.sandbox.started import Started, what_runs


def programs_of(specs: Iterable[AgentSpec]) -> Mapping[str, str]:
    """Path and sha256 of the script, module or binary behind each command line, and of a callable's file.

    Left out are files that only a run makes. Other files of a program, which it imports, are not looked at. Errors:
    PythonError.
    """
    agents = {(spec.path, spec.name): spec for spec in specs}.values()
    found = [it for spec in agents for it in _programs(spec)]
    return {it.entry: it.entry_hash for it in found if it.entry is not None and it.entry_hash is not None}


def edited_programs(spec: AgentSpec, history: Path, planned: Mapping[str, str]) -> list[str]:
    """The programs that a run recorded with a text that none of the planned programs has.

    A run's copy of a file is named by the file. Left out is a file that only the run made or could find. Errors:
    PythonError.
    """
    ran = dict.fromkeys(file for file, text in _recorded(history) if text not in planned.values())
    found = [str(it) for file in ran if (it := _lasting(Path(file), spec)) is not None]
    known = {*planned, *programs_of([spec])} if found else set()
    return [file for file in found if file in known]


def _recorded(history: Path) -> list[tuple[str, str]]:
    """Path and sha256 of each program of a run. Only their lines are parsed: a whole history can take seconds."""
    with suppress(OSError), history.open(encoding="utf-8", errors="replace") as lines:
        starts = [json.loads(line) for line in lines if line.startswith('{"event": "agent_started"')]
        return [(start["entry"], start["entry_hash"]) for start in starts if start["entry_hash"]]
    return []


def _lasting(file: Path, spec: AgentSpec) -> Path | None:
    """The file itself, or the one in the spec's `workdir` of which it was the run's copy; None if it is neither."""
    if file.is_file():
        return file
    folder = folder_of(spec)
    copied = (folder.joinpath(*file.parts[number:]) for number in range(1, len(file.parts))) if folder else ()
    return next((it for it in copied if it.is_file()), None)


def changed(now: Mapping[str, str], before: Mapping[str, str]) -> list[str]:
    """The files that have another hash now, or that were not there before; if there are none, those that are gone."""
    return sorted(dict(now.items() - before.items()) or dict(before.items() - now.items()))


def _programs(spec: AgentSpec) -> Iterator[Started]:
    folder = folder_of(spec) or Path("/")
    theirs = os.environ.get("PYTHONPATH", "") if "PYTHONPATH" in spec.inherit_env else ""
    env = {"PATH": search_path(spec), "PYTHONPATH": filled(spec.env.get("PYTHONPATH", theirs), spec)}
    for line in command_lines(spec).values():
        yield what_runs([filled(part, spec) for part in line], folder, env)
    if spec.callable:
        yield started_in(spec, filled(spec.callable, spec))
