"""The command lines of a spec, with the values that no run changes, and the PATH on which their programs are found."""

import os
import sys
from collections.abc import Mapping, Sequence

from wedgehog.harness.agents.runtime_install import bin_of, path_of
from wedgehog.harness.agents.spec import AgentSpec


def command_lines(spec: AgentSpec) -> Mapping[str, Sequence[str]]:
    """Each command line by its key."""
    lines = {"command": spec.command, "resume": spec.resume, "wake_up": spec.wake_up}
    parts = {key: getattr(spec, key) for key in ("http", "page", "chat", "lines", "acp", "tui")}
    for step in ("start", "resume"):
        lines |= {f"{key}: {step}": getattr(part, step, None) for key, part in parts.items()}
    return {key: line for key, line in lines.items() if line}


def filled(part: str, spec: AgentSpec) -> str:
    """`part` with the templates whose values are known before a run; the others stay."""
    values = {"python": sys.executable, "here": str(spec.here)}
    if spec.runtime and spec.install:
        values |= {"bin": str(bin_of(spec.install, spec.runtime)), "install": str(spec.install)}
    for name, value in values.items():
        part = part.replace("{" + name + "}", value)
    return part


def search_path(spec: AgentSpec) -> str:
    """The agent's PATH; a template that only a run fills stays in it."""
    own = path_of(spec.install, spec.runtime) if spec.runtime and spec.install else ()
    usual = os.pathsep.join([*map(str, own), os.environ.get("PATH", os.defpath)])
    return filled(spec.env.get("PATH", usual), spec)
