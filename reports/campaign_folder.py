"""A campaign's folder, read back: what ran, the finished runs, and those that never came to an end."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from wedgehog.harness.record.store import StoredRun, read_run, run_folders

NO_FAMILY = "scenarios"

OF_SCENARIOS = ("families", "whys", "tags")
"""Keys of campaign.json that say more of scenarios."""

CONTROL = "control"
"""The folder of the agents' control runs, which have no judgement of their own."""


@dataclass(frozen=True)
class Unfinished:
    """A run without a judgement that can be read, and why there is none."""

    folder: Path
    why: str


@dataclass(frozen=True)
class StoredCampaign:
    """All that a report knows.

    `facts` is campaign.json as data. Three of its keys say more of scenarios: `families` (scenario → family), `whys`
    (scenario → why it exists) and `tags` (scenario → its tags); all others are shown as they are.
    """

    folder: Path
    facts: Mapping[str, Any]
    runs: tuple[StoredRun, ...]
    unfinished: tuple[Unfinished, ...] = ()
    controls: tuple[Path, ...] = ()
    """Folders of the control runs."""

    @cached_property
    def families(self) -> Mapping[str, str]:
        """Scenario → family, in the campaign's own order."""
        return _mapping(self.facts.get("families"))

    @cached_property
    def whys(self) -> Mapping[str, str]:
        """Scenario → why it exists, in one sentence."""
        return _mapping(self.facts.get("whys"))

    def family(self, scenario: str) -> str:
        """The family of a scenario, or one name for all that have none."""
        return self.families.get(scenario, NO_FAMILY)

    def tags(self, scenario: str) -> tuple[str, ...]:
        """The tags of a scenario; an older campaign kept none."""
        said = self.facts.get("tags")
        kept = said.get(scenario) if isinstance(said, dict) else None
        return tuple(map(str, kept)) if isinstance(kept, list) else ()

    def place(self, path: Path) -> str:
        """A path as seen from the campaign's folder."""
        return path.relative_to(self.folder).as_posix() if path.is_relative_to(self.folder) else path.as_posix()


def load(folder: Path) -> StoredCampaign:
    """Read a campaign's folder (or a single run's), however far it came.

    Raises:
        ValueError: there is no such folder.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    runs: list[StoredRun] = []
    unfinished: list[Unfinished] = []
    judged = _outermost(run_folders(folder))
    begun = _outermost([*judged, *(path.parent for path in folder.rglob("history.jsonl"))])
    controls = [place for place in begun if place not in judged and place.parent.name == CONTROL]
    for place in begun:
        if place in judged:
            try:
                runs.append(read_run(place))
            except (ValueError, OSError) as wrong:
                unfinished.append(Unfinished(place, f"can't be read: {wrong}"))
        elif place not in controls:
            unfinished.append(Unfinished(place, "ended before it was judged"))
    facts = _facts(folder / "campaign.json")
    order = {scenario: number for number, scenario in enumerate(_mapping(facts.get("families")))}
    ordered = sorted(runs, key=lambda run: _order(run, order))
    return StoredCampaign(folder, facts, tuple(ordered), tuple(unfinished), tuple(controls))


def _mapping(said: object) -> dict[str, str]:
    return {str(key): str(value) for key, value in said.items()} if isinstance(said, dict) else {}


def _outermost(folders: Iterable[Path]) -> list[Path]:
    """Folders that lie in no other one of them: an agent may keep files of the same names in its own."""
    found: list[Path] = []
    for folder in sorted(set(folders), key=lambda path: path.parts):
        if not any(folder.is_relative_to(outer) for outer in found[-1:]):
            found.append(folder)
    return found


def _order(run: StoredRun, order: Mapping[str, int]) -> tuple[int, str, tuple[int, str], int]:
    judged = run.judgement
    return (order.get(judged.scenario, len(order)), judged.scenario, agent_order(judged.agent), judged.repeat)


FIX_ROWS = ("buggy", "only-", "fixed", "without-")
"""How the variants of a specimen are named, from broken to repaired."""

SINGLE_FIX = ("only-", "without-")
"""Those with one fix alone, and those with one left out."""


def agent_order(agent: str) -> tuple[int, str]:
    """Specimens first, from broken to repaired; then all others by name."""
    return next(((n, agent) for n, start in enumerate(FIX_ROWS) if agent.startswith(start)), (len(FIX_ROWS), agent))


def _facts(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
