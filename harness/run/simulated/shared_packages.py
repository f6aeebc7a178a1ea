"""Packages of the agents that the worker of the simulated world imports once, before it forks.

A provider's SDK takes half a second of CPU to import, and each run in virtual time is a fork that would do it again.
"""

import ast
import contextlib
import importlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from wedgehog.harness.agents.callables.first_imports import SHARED, module_file
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.started import what_imports
from wedgehog.harness.sim.world import SimWorld

MOST_FILES = 50
"""So many files of an agent are read."""


@dataclass(frozen=True)
class SharedPackages:
    """What to import, and with which environment variables."""

    names: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, agents: Sequence[AgentSpec]) -> "SharedPackages":
        """Those that the agents' own files import; none if the agents have different variables."""
        several = [_fixed_variables(agent) for agent in agents]
        if not several or any(env != several[0] for env in several):
            return cls()
        return cls(tuple(sorted({name for agent in agents for name in _imported(agent)})), several[0])

    def load(self, world: SimWorld) -> None:
        """Import them as an agent would: in virtual time, with its variables. The agent reports what fails."""

        async def load() -> None:
            for name in self.names:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)

        with mock.patch.dict(os.environ, self.env, clear=True), contextlib.redirect_stdout(sys.stderr):
            world.run(load)


def _fixed_variables(agent: AgentSpec) -> dict[str, str]:
    """Those that are the same in each run."""
    inherited = {name: os.environ[name] for name in agent.inherit_env if name in os.environ}
    return inherited | {name: value for name, value in agent.env.items() if "{" not in value}


def _imported(agent: AgentSpec) -> Iterator[str]:
    """The shared packages that its files import, unless a file of its own has the name."""
    target = (agent.callable or agent.simulate or "").replace("{here}", str(agent.here))
    if target.rpartition(":")[0].endswith(".py"):
        target = str(agent.here / target)
    entry = what_imports(target, [str(agent.here)]).entry
    if entry is None:
        return
    folders = (Path(entry).parent, agent.here)
    left, seen = [Path(entry)], set[Path]()
    while left and len(seen) < MOST_FILES:
        if (file := left.pop()) in seen:
            continue
        seen.add(file)
        for name, level in _imports_in(file):
            own = [found for folder in (_above(file, level), *folders) if (found := module_file(folder, name))]
            left += own
            if not own and level == 0 and name in SHARED:
                yield name


def _imports_in(file: Path) -> Iterator[tuple[str, int]]:
    """The first part of each imported name, and how many dots stand before it."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [node.module] if node.module else [alias.name for alias in node.names]
            yield from ((name.partition(".")[0], node.level) for name in names)


def _above(file: Path, level: int) -> Path:
    return file.parents[max(0, min(level, len(file.parents)) - 1)]
