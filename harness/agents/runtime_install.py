"""How a known runtime is installed: each version into its own folder, ~/.cache/wedgehog/agents/codex/0.169.0/."""

import json
import platform
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Self

import platformdirs
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from wedgehog.harness.scenario.mistake import BadValueError

MARK = "installed.json"
"""Written last: without it, the installation did not finish."""


def as_version(text: str) -> str:
    """Check `text`, which becomes a folder's name and must not leave its parent. Errors: BadValueError."""
    if not re.fullmatch(r"[0-9][\w.+-]*", text):
        raise BadValueError(f"expected a version such as 1.2.3, found {text!r}")
    return text


def _as_text(given: object) -> object:
    if isinstance(given, int | float):
        raise BadValueError(f'a version stands in quotes: "{given}", or "{given}0" if that was its last digit')
    return given


Version = Annotated[str, BeforeValidator(_as_text), AfterValidator(as_version)]


class Runtime(BaseModel):
    """How a known agent is installed. `{version}` in a package name is replaced by the version."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    npm: Annotated[tuple[str, ...], Field(description="npm packages, as `npm install` takes them")] = ()
    pip: Annotated[tuple[str, ...], Field(description="Python packages, as pip takes them")] = ()
    version: Annotated[Version, Field(description="the default version")]
    tried: Annotated[tuple[Version, ...], Field(description="other versions that work with this file")] = ()
    licence: str
    same_as: Annotated[str | None, Field(description="the known runtime whose installations it uses")] = None
    node: Annotated[str | None, Field(description="the major version of Node to install with it")] = None
    ripgrep: Annotated[str | None, Field(description="the version of @vscode/ripgrep to install with it")] = None
    npm_scripts: Annotated[bool, Field(description="whether its packages' install scripts run")] = True
    stubs: Annotated[dict[str, dict[str, str]], Field(description="npm packages to replace by the given files")] = {}

    @model_validator(mode="after")
    def _one_registry(self) -> Self:
        if bool(self.npm) == bool(self.pip):
            raise BadValueError("expected either `npm` or `pip`", "pip" if self.pip else "npm")
        return self


def agents_cache() -> Path:
    """The folder in which runtimes are installed."""
    return Path(platformdirs.user_cache_dir("wedgehog")) / "agents"


def install_folder(name: str, version: str) -> Path:
    """The folder of one version. Errors: BadValueError if `version` is no version."""
    return agents_cache() / name / as_version(version)


def bin_of(place: Path, runtime: Runtime) -> Path:
    """The folder of its programs."""
    if runtime.npm:
        return place / "node_modules" / ".bin"
    return place / "venv" / ("Scripts" if sys.platform == "win32" else "bin")


def _machine() -> str:
    return {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), platform.machine())


def node_package() -> str:
    """The npm package that contains Node for this machine."""
    return f"node-{'win' if sys.platform == 'win32' else sys.platform}-{_machine()}"


def ripgrep_package() -> str:
    """The npm package that contains ripgrep for this machine, which agents that search with it download else."""
    return f"@vscode/ripgrep-{sys.platform}-{_machine()}"


def path_of(place: Path, runtime: Runtime) -> tuple[Path, ...]:
    """The first entries of the agent's PATH: its own Node, if it needs one, its programs, and its own ripgrep."""
    own_node = (place / "node_modules" / node_package() / "bin",) if runtime.node else ()
    own_ripgrep = (place / "node_modules" / ripgrep_package() / "bin",) if runtime.ripgrep else ()
    return (*own_node, bin_of(place, runtime), *own_ripgrep)


def installed(name: str) -> dict[str, dict[str, Any]]:
    """The installed versions of `name`, each with the content of its mark file."""
    found: dict[str, dict[str, Any]] = {}
    for mark in sorted((agents_cache() / name).glob(f"*/{MARK}")):
        with suppress(OSError, ValueError):
            found[as_version(mark.parent.name)] = json.loads(mark.read_text(encoding="utf-8"))
    return found
