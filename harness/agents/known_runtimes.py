"""The known runtimes, one spec file each: `codex` or `codex@0.169.0` on the command line; and to install one."""

import json
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path

from wedgehog.harness.agents.runtime_install import (
    MARK,
    Runtime,
    as_version,
    bin_of,
    install_folder,
    installed,
    node_package,
    path_of,
    ripgrep_package,
)
from wedgehog.harness.agents.spec import AgentSpec, at_version, load_spec
from wedgehog.harness.scenario.mistake import BadValueError

INSTALL_TIMEOUT_S = 1200
MOST_LINES = 5
REASON = re.compile(r"npm (error|ERR!) [^\s{}]|ERROR: |error: ")
"""Beginning of the lines in which npm and pip give the reason; the rest of npm's trace is indented."""
ADVICE = re.compile(r"A complete log of this run|If you are behind a proxy")


class UnknownRuntimeError(ValueError):
    """The runtime is unknown or not installed; one line."""


@cache
def known() -> dict[str, AgentSpec]:
    """Every known runtime at its default version, by name."""
    folder = Path(str(files("wedgehog.harness.agents"))) / "runtimes"
    paths = sorted(folder.glob("*.yaml"), key=lambda path: path.stem)
    return {path.stem: load_spec(path) for path in paths}


def named(name: str) -> AgentSpec:
    """The runtime `NAME[@VERSION]`, by default the file's, else the newest installed. Errors: UnknownRuntimeError."""
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
    """The runtime `NAME` or `NAME@VERSION`. Errors: UnknownRuntimeError, which says how to install it."""
    spec = named(name)
    if spec.install is None or not (spec.install / MARK).is_file():
        raise UnknownRuntimeError(f"{spec.name} is not installed: wedgehog agents install {spec.name}")
    lost = next((file for file in programs(spec) if not file.exists()), None)
    if lost is not None:
        again = f"wedgehog agents install {spec.name} --again"
        raise UnknownRuntimeError(f"{spec.name} is incomplete, {lost} is missing: {again}")
    return spec


def programs(spec: AgentSpec) -> list[Path]:
    """Files that a runtime needs: those in its command line, its own Node, and its own ripgrep."""
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
    path = path_of(place, runtime)
    own = {path[0] / "node": runtime.node, path[-1] / "rg": runtime.ripgrep}
    return [*named_there, *(program for program, version in own.items() if version)]


def _usual(spec: AgentSpec) -> str:
    assert spec.runtime is not None  # noqa: S101  a test checks every file
    have = installed(spec.installed_as)
    if spec.runtime.version in have or not have:
        return spec.runtime.version
    return max(have, key=lambda version: [int(part) if part.isdigit() else 0 for part in version.split(".")])


# ---- installation


class InstallError(Exception):
    """The runtime could not be installed; one line, with the path of the log."""


def install(spec: AgentSpec, report: Callable[[str], None], *, again: bool = False) -> Path:
    """Install the runtime if it is not yet, or `again`; return its folder. Errors: InstallError."""
    runtime, place = spec.runtime, spec.install
    if runtime is None or place is None:
        raise InstallError(f"{spec.path}: the spec does not say how to install {spec.name} (runtime: …)")
    if (place / MARK).is_file() and not again:
        report(f"{spec.name} is installed: {place}")
        return place
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        _npm(runtime, spec.version, place, report) if runtime.npm else _pip(runtime, spec.version, place, report)
    except BaseException:
        (place / MARK).unlink(missing_ok=True)
        raise
    facts = {"name": spec.installed_as, "version": spec.version, "packages": _packages(runtime, spec.version)}
    (place / MARK).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    report(f"installed {spec.name}: {place}")
    return place


def remove(name: str, version: str) -> bool:
    """Delete one installed version; return whether it existed."""
    place = install_folder(name, version)
    there = place.is_dir()
    shutil.rmtree(place, ignore_errors=True)
    return there


def _packages(runtime: Runtime, version: str) -> list[str]:
    return [package.replace("{version}", version) for package in (*runtime.npm, *runtime.pip)]


def _npm(runtime: Runtime, version: str, place: Path, report: Callable[[str], None]) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise InstallError("npm is not on PATH: install Node.js first")
    packages = _packages(runtime, version)
    if runtime.node:
        packages.append(f"{node_package()}@{runtime.node}")
    if runtime.ripgrep:
        packages.append(f"{ripgrep_package()}@{runtime.ripgrep}")
    overrides = {name: f"file:{_stub(place, name, content)}" for name, content in runtime.stubs.items()}
    manifest = {"name": "wedgehog-agent", "private": True, "overrides": overrides}
    (place / "package.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    report(f"npm install {' '.join(packages)}")
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    scripts = [] if runtime.npm_scripts else ["--ignore-scripts"]
    _run([npm, "install", "--prefix", str(place), *quiet, *scripts, *packages], place)


def _stub(place: Path, name: str, content: dict[str, str]) -> Path:
    """Write an empty package of that name, in place of one that is unavailable and not needed."""
    folder = place / "stubs" / name
    for file, text in {"package.json": json.dumps({"name": name, "version": "99.0.0"}), **content}.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text, encoding="utf-8")
    return folder


def _pip(runtime: Runtime, version: str, place: Path, report: Callable[[str], None]) -> None:
    venv.create(place / "venv", with_pip=True, symlinks=sys.platform != "win32")
    packages = _packages(runtime, version)
    report(f"pip install {' '.join(packages)}")
    python = bin_of(place, runtime) / "python"
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    _run([str(python), "-m", "pip", "install", *quiet, *packages], place)


def _run(argv: Sequence[str], place: Path) -> None:
    log = place / "install.log"
    with log.open("wb") as log_file:
        try:
            done = subprocess.run(
                argv,
                stdout=log_file,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                timeout=INSTALL_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise InstallError(f"{argv[0]} took more than {INSTALL_TIMEOUT_S} s; see {log}") from None
    if done.returncode:
        output = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        raise InstallError(f"{Path(argv[0]).name} failed: {' | '.join(_why(output))} (full output: {log})")


def _why(output: Sequence[str]) -> list[str]:
    """The lines of npm's or pip's output that give the reason; without any, the last lines."""
    lines = [line for line in output if not ADVICE.search(line)]
    reasons = [line for line in lines if REASON.match(line)][:MOST_LINES]
    if not reasons:
        return list(output[-MOST_LINES:])
    lost = [line for line in lines if line.startswith("WARNING: Retrying")][-1:]
    last = [line for line in lines[-1:] if not line.startswith("npm ")]
    return [re.sub(r"^npm (error|ERR!) ", "", line) for line in dict.fromkeys([*lost, *reasons, *last])]
