"""Where a known runtime comes from, and where it lies once it is installed.

Each version has a folder of its own in the user's cache, so that several lie side by side and nothing is shared with
the user's own installation:

    ~/.cache/wedgehog/agents/codex/0.169.0/     node_modules/.bin/codex      installed.json
"""

import json
import platform
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Self

import platformdirs
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from wedgehog.harness.scenario.document import BadValueError

MARK = "installed.json"
"""Written last: a folder without it was left by an installation that did not end."""


def as_version(text: str) -> str:
    """`text`, which becomes a folder's name: it must not lead out of its folder. Raises BadValueError."""
    if not re.fullmatch(r"[0-9][\w.+-]*", text):
        raise BadValueError(f"expected a version such as 1.2.3, found {text!r}")
    return text


Version = Annotated[str, AfterValidator(as_version)]


class Runtime(BaseModel):
    """How a known agent is installed. `{version}` in a package stands for the version that is asked for."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    npm: Annotated[tuple[str, ...], Field(description="npm packages, as `npm install` takes them")] = ()
    pip: Annotated[tuple[str, ...], Field(description="Python packages, as pip takes them")] = ()
    version: Annotated[Version, Field(description="the one that is meant where none is named")]
    tried: Annotated[tuple[Version, ...], Field(description="others that this file is known to fit")] = ()
    licence: str
    same_as: Annotated[str | None, Field(description="the known runtime whose installations it shares")] = None
    node: Annotated[str | None, Field(description="the major version of Node that is installed beside it")] = None
    npm_scripts: Annotated[bool, Field(description="whether its packages' install scripts run")] = True
    stubs: Annotated[dict[str, dict[str, str]], Field(description="npm packages replaced by files of ours")] = {}

    @model_validator(mode="after")
    def _one_registry(self) -> Self:
        if bool(self.npm) == bool(self.pip):
            raise BadValueError("expected `npm` or `pip`, one of the two", "pip" if self.pip else "npm")
        return self


def agents_cache() -> Path:
    """Where runtimes are installed."""
    return Path(platformdirs.user_cache_dir("wedgehog")) / "agents"


def place_of(name: str, version: str) -> Path:
    """The folder of one version. Errors: BadValueError where it is none."""
    return agents_cache() / name / as_version(version)


def bin_of(place: Path, runtime: Runtime) -> Path:
    """Its programs."""
    if runtime.npm:
        return place / "node_modules" / ".bin"
    return place / "venv" / ("Scripts" if sys.platform == "win32" else "bin")


def node_package() -> str:
    """The npm package that holds Node itself for this machine."""
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine())
    return f"node-{'win' if sys.platform == 'win32' else sys.platform}-{machine}"


def path_of(place: Path, runtime: Runtime) -> tuple[Path, ...]:
    """What stands first in the agent's PATH: its own Node where it needs one, and its programs."""
    own_node = (place / "node_modules" / node_package() / "bin",) if runtime.node else ()
    return (*own_node, bin_of(place, runtime))


def installed(name: str) -> dict[str, dict[str, Any]]:
    """What is known of each installed version of `name`."""
    found: dict[str, dict[str, Any]] = {}
    for mark in sorted((agents_cache() / name).glob(f"*/{MARK}")):
        with suppress(OSError, ValueError):
            found[as_version(mark.parent.name)] = json.loads(mark.read_text(encoding="utf-8"))
    return found
