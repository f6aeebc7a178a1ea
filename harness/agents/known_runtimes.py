"""The known runtimes: one spec file each, named on the command line as `codex` or `codex@0.169.0`."""

from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path

from wedgehog.harness.agents.runtime_install import MARK, as_version, bin_of, installed, path_of
from wedgehog.harness.agents.spec import AgentSpec, at_version, load_spec
from wedgehog.harness.scenario.document import BadValueError


class UnknownRuntimeError(ValueError):
    """The runtime is unknown or not installed; one line."""


@cache
def known() -> dict[str, AgentSpec]:
    """Every known runtime at its default version, by name."""
    folder = Path(str(files("wedgehog.harness.agents"))) / "runtimes"
    return {path.stem: load_spec(path) for path in sorted(folder.glob("*.yaml"))}


def named(name: str) -> AgentSpec:
    """The runtime `NAME` or `NAME@VERSION`, installed or not.

    The default version is the file's own; if only others are installed, the newest of them.

    Raises:
        UnknownRuntimeError: the name is unknown, or the text after the @ is no version.
    """
    family, at, version = name.partition("@")
    specs = known()
    if family not in specs:
        near = get_close_matches(family, specs, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; known runtimes: {', '.join(specs)}"
        raise UnknownRuntimeError(f"unknown runtime {family!r}{hint}")
    try:
        return at_version(specs[family], as_version(version) if at else _usual(specs[family]))
    except BadValueError as wrong:
        raise UnknownRuntimeError(f"{name}: {wrong}") from None


def ready(name: str) -> AgentSpec:
    """The runtime `NAME` or `NAME@VERSION`, which must be installed.

    Raises:
        UnknownRuntimeError: unknown, not installed, or incomplete; the message says how to install it.
    """
    spec = named(name)
    if spec.install is None or not (spec.install / MARK).is_file():
        raise UnknownRuntimeError(f"{spec.name} is not installed: wedgehog agents install {spec.name}")
    lost = next((file for file in programs(spec) if not file.exists()), None)
    if lost is not None:
        again = f"wedgehog agents install {spec.name} --again"
        raise UnknownRuntimeError(f"{spec.name} is incomplete, {lost} is missing: {again}")
    return spec


def programs(spec: AgentSpec) -> list[Path]:
    """Files that a runtime needs to start: those in its command line, and its own Node."""
    runtime, place = spec.runtime, spec.install
    if runtime is None or place is None:
        return []
    folders = {"{bin}/": bin_of(place, runtime), "{install}/": place}
    named_there = [
        folder / word.removeprefix(name)
        for word in spec.command or ()
        for name, folder in folders.items()
        if word.startswith(name)
    ]
    return [*named_there, *(path_of(place, runtime)[0] / "node" for _ in filter(None, [runtime.node]))]


def _usual(spec: AgentSpec) -> str:
    assert spec.runtime is not None  # noqa: S101  a test checks every file
    have = installed(spec.installed_as)
    if spec.runtime.version in have or not have:
        return spec.runtime.version
    return max(have, key=lambda version: [int(part) if part.isdigit() else 0 for part in version.split(".")])
