"""Refuses a name under a spec's `known:` that is no scenario: it would have no effect."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from wedgehog.harness.agents.missing import missing_files
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.invariants import known
from wedgehog.harness.record.expectation import did_you_mean
from wedgehog.harness.scenario.document import BadFileError, load
from wedgehog.harness.scenario.mistake import Mistake

MANY = 20_000
"""In a folder with more entries than this, a name may be that of any scenario."""
NOT_SEARCHED = ("node_modules", "__pycache__", "site-packages")
NAME = re.compile(rb"^name:[ \t]*[\"']?([^\s\"'#]+)", re.MULTILINE)


def check_known(specs: Iterable[AgentSpec], scenarios: Iterable[Path], stock: Path) -> None:
    """Check names under `known:` against the stock, and scenarios beside the played ones and below the spec's folder.

    BadFileError: a name is that of none, with its line in the spec; and what else keeps the agent from its start.
    """
    names = _scenarios(scenarios, stock)
    for spec in specs:
        if wrong := _wrong(spec.path, spec.known, names):
            raise load(spec.path).errors([*wrong, *missing_files(spec)])


def with_unknown(bad: BadFileError, scenarios: Iterable[Path], stock: Path) -> BadFileError:
    """The mistakes of a spec that cannot be used, together with its names under `known:` that are no scenarios."""
    if bad.line is None:
        return bad
    found = load(bad.path)
    known = found.data.get("known") if isinstance(found.data, dict) else None
    wrong = _wrong(bad.path, known, _scenarios(scenarios, stock)) if isinstance(known, dict) else []
    return bad.beside(found.errors(wrong)) if wrong else bad


def _scenarios(played: Iterable[Path], stock: Path) -> set[str]:
    """The names of the stock scenarios, and of those beside the played ones."""
    folders = {path.parent for path in played}
    names = {name for folder in folders for path in folder.glob("*.yaml") for name in _names(path)}
    return names | {path.stem for path in stock.rglob("*.yaml")}


def _wrong(spec: Path, known: Iterable[str], names: set[str]) -> list[Mistake]:
    """The names under `known:` that are neither among `names` nor those of scenarios below the spec's folder."""
    wrong = [Mistake(("known", name), _unknown(name, names)) for name in sorted({*known} - names)]
    below = _below(spec.parent) if wrong else None
    return [one for one in wrong if one.place[-1] not in below] if below is not None else []


def _names(scenario: Path) -> Iterator[str]:
    """The name of the file, and the one that stands in it if it can be read."""
    yield scenario.stem
    try:
        found = NAME.search(scenario.read_bytes())
    except OSError:
        return
    if found:
        yield found[1].decode("utf-8", "replace")


def _below(folder: Path) -> set[str] | None:
    """The names of all that may be scenarios in a folder and its subfolders; None if they are too many to look at."""
    names: set[str] = set()
    entries = 0
    for place, folders, files in os.walk(folder):
        entries += len(folders) + len(files)
        if entries > MANY:
            return None
        folders[:] = [name for name in folders if not name.startswith(".") and name not in NOT_SEARCHED]
        names |= {name for file in files if file.endswith(".yaml") for name in _names(Path(place, file))}
    return names


def _unknown(name: str, scenarios: set[str]) -> str:
    if name in known():
        return f"known: {name!r} is an invariant, and failures are known by their scenario"
    return f"known: no scenario is called {name!r}{did_you_mean(name, scenarios)}"
