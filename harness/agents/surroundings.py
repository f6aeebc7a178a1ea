"""The world that an agent wakes up in: folders of its own, files that its spec asks for, and a clean environment."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wedgehog.harness.agents.base import AgentError, Place
from wedgehog.harness.agents.spec import AgentSpec, folder_of
from wedgehog.harness.agents.templates import expand
from wedgehog.harness.ports import free_port

GIVEN = ("PATH", "LANG", "TERM")
"""What it gets of our own environment. Keys, proxies and everything else stay with us."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is fixed for the whole run."""

    values: Mapping[str, str]
    """For the templates; `message` comes with each turn."""
    env: Mapping[str, str]
    mark: str
    """What its processes carry as WEDGEHOG_RUN. Below the run's own: closing the agent leaves the run's servers."""

    def fill(self, text: str, message: str | None = None) -> str:
        """`text` with its templates filled in."""
        return expand(text, self.values if message is None else {**self.values, "message": message})


def prepare(spec: AgentSpec, place: Place) -> Surroundings:
    """Make the folders, copy the template folder, write the files. Errors: AgentError."""
    for folder in (place.home, place.cwd, place.tmp, place.session_dir):
        folder.mkdir(parents=True, exist_ok=True)
    values = _values(spec, place)
    surroundings = Surroundings(values, _environment(spec, place, values), f"{place.run_id}/agent")
    _copy_workdir(spec, place)
    for name, content in spec.files.items():
        _write(place, surroundings.fill(name), surroundings.fill(content))
    return surroundings


def session_files(spec: AgentSpec, place: Place) -> list[Path]:
    """The files that the spec calls its sessions, as they are now."""
    values = _values(spec, place)
    found = [file for pattern in spec.session_files for file in _glob(place.cwd / expand(pattern, values))]
    return list(dict.fromkeys(file for file in found if file.is_file()))


def _glob(pattern: Path) -> list[Path]:
    return sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))


def _values(spec: AgentSpec, place: Place) -> dict[str, str]:
    values = {
        "python": sys.executable,
        "here": str(spec.here),
        "home": str(place.home),
        "cwd": str(place.cwd),
        "session_dir": str(place.session_dir),
        "session": place.session,
        "llm_url": place.llm_url,
        "tool_url": place.tool_url or "",
        "web_url": place.web_url or "",
        "key": place.key,
        "time_scale": f"{place.time_scale:g}",
        "fixes": ",".join(spec.chosen) or "none",
    }
    if spec.http and spec.http.start:
        values["port"] = str(free_port())
    return values


def _environment(spec: AgentSpec, place: Place, values: Mapping[str, str]) -> dict[str, str]:
    own = {"LANG": "C.UTF-8", "TERM": "dumb", **_ours(GIVEN), "HOME": str(place.home), "TMPDIR": str(place.tmp)}
    named = {name: expand(value, values) for name, value in spec.env.items()}
    return {**own, **_ours(spec.inherit_env), **named}


def _ours(names: Iterable[str]) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}


def _copy_workdir(spec: AgentSpec, place: Place) -> None:
    template = folder_of(spec)
    if template is None:
        return
    if not template.is_dir():
        raise AgentError(f"{spec.path}: workdir: no such folder: {template}")
    shutil.copytree(template, place.cwd, symlinks=True, dirs_exist_ok=True)


def _write(place: Place, name: str, content: str) -> None:
    file = Path(os.path.normpath(place.cwd / name))
    if not file.is_relative_to(place.folder.absolute()):
        raise AgentError(f"files: {name!r} lies outside the run's own folder; use {{home}}, {{cwd}} or {{session_dir}}")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
