"""Refuses a name under a spec's `known:` that is no scenario: it would have no effect."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.invariants import known
from wedgehog.harness.record.expectation import did_you_mean
from wedgehog.harness.scenario.document import load
from wedgehog.harness.scenario.mistake import Mistake

MANY = 20_000
"""In a folder with more entries than this, a name may be that of any scenario."""
NOT_SEARCHED = ("node_modules", "__pycache__", "site-packages")
NAME = re.compile(rb"^name:[ \t]*[\"']?([^\s\"'#]+)", re.MULTILINE)


def check_known(specs: Iterable[AgentSpec], scenarios: Iterable[Path], stock: Path) -> None:
    """Check names under `known:` against the stock, and scenarios beside the played ones and below the spec's folder.

    BadFileError: a name is that of none, with its line in the spec.
    """
    folders = {path.parent for path in scenarios}
    names = {name for folder in folders for path in folder.glob("*.yaml") for name in _names(path)}
    names |= {path.stem for path in stock.rglob("*.yaml")}
    for spec in specs:
        wrong = [Mistake(("known", name), _unknown(name, names)) for name in sorted(spec.known.keys() - names)]
        if wrong and (below := _below(spec.path.parent)) is not None:
            wrong = [one for one in wrong if one.place[-1] not in below]
            if wrong:
                raise load(spec.path).errors(wrong)


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
