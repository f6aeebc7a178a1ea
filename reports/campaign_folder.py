"""Read a campaign's folder: what ran, the finished runs, and the unfinished ones."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from wedgehog.harness.record.store import StoredRun, read_run
from wedgehog.harness.record.verdict import Verdict
from wedgehog.reports.history_numbers import RunNumbers, numbers_of

NO_FAMILY = "scenarios"

OF_SCENARIOS = ("families", "whys", "tags")
"""Keys of campaign.json that describe scenarios; reports show all other keys as they are."""

CONTROL = "control"
"""The folder of the agents' control runs. They have no judgement."""


@dataclass(frozen=True)
class Unfinished:
    """A run without a readable judgement, and the reason."""

    folder: Path
    why: str


@dataclass(frozen=True)
class StoredCampaign:
    """All input of a report. `facts` is campaign.json; `controls` are the folders of the control runs."""

    folder: Path
    facts: Mapping[str, Any]
    runs: tuple[StoredRun, ...]
    numbers: Mapping[Path, RunNumbers]
    """By the folder of the run. The runs hold no history: each use of one reads it again."""
    unfinished: tuple[Unfinished, ...] = ()
    controls: tuple[Path, ...] = ()

    @cached_property
    def families(self) -> Mapping[str, str]:
        """Scenario → family, in the order of the campaign."""
        return _mapping(self.facts.get("families"))

    @cached_property
    def whys(self) -> Mapping[str, str]:
        """Scenario → its `why`."""
        return _mapping(self.facts.get("whys"))

    def family(self, scenario: str) -> str:
        """The family of a scenario; `NO_FAMILY` if it has none."""
        return self.families.get(scenario, NO_FAMILY)

    def tags(self, scenario: str) -> tuple[str, ...]:
        """The tags of a scenario; older campaigns have none."""
        said = self.facts.get("tags")
        kept = said.get(scenario) if isinstance(said, dict) else None
        return tuple(map(str, kept)) if isinstance(kept, list) else ()

    def place(self, path: Path) -> str:
        """A path relative to the campaign's folder."""
        return path.relative_to(self.folder).as_posix() if path.is_relative_to(self.folder) else path.as_posix()


def load(folder: Path, with_history: Callable[[StoredRun], None] = lambda run: None) -> StoredCampaign:
    """Read the folder of a campaign, finished or not, or of a single run; raise ValueError if there is none.

    `with_history` gets each finished run with its history, which is not kept.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    runs: list[StoredRun] = []
    numbers: dict[Path, RunNumbers] = {}
    verdicts: dict[Verdict, Verdict] = {}
    unfinished: list[Unfinished] = []
    judged, begun = _run_folders(folder)
    controls = [place for place in begun if place not in judged and place.parent.name == CONTROL]
    for place in begun:
        if place in judged:
            try:
                run = read_run(place)
                numbers[place] = numbers_of(run)
                with_history(run)
                runs.append(_light(run, verdicts))
            except (ValueError, OSError) as wrong:
                unfinished.append(Unfinished(place, f"it can't be read: {wrong}"))
        elif place not in controls:
            unfinished.append(Unfinished(place, "the run ended before it was judged"))
    facts = _facts(folder / "campaign.json")
    order = {scenario: number for number, scenario in enumerate(_mapping(facts.get("families")))}
    ordered = sorted(runs, key=lambda run: _order(run, order))
    return StoredCampaign(folder, facts, tuple(ordered), numbers, tuple(unfinished), tuple(controls))


def _run_folders(campaign: Path) -> tuple[frozenset[Path], list[Path]]:
    """The folders of judged runs, and of all runs that were begun, by name."""
    judged, begun = [], []
    for place, _, files in os.walk(campaign):
        if "verdicts.json" in files:
            judged.append(Path(place))
        if "history.jsonl" in files:
            begun.append(Path(place))
    finished = _outermost(judged)
    return frozenset(finished), _outermost([*finished, *begun])


def _light(run: StoredRun, verdicts: dict[Verdict, Verdict]) -> StoredRun:
    """The run without its history; equal verdicts of all runs are one object."""
    shared = tuple(verdicts.setdefault(verdict, verdict) for verdict in run.judgement.verdicts)
    return StoredRun(run.folder, replace(run.judgement, verdicts=shared))


def _mapping(said: object) -> dict[str, str]:
    return {str(key): str(value) for key, value in said.items()} if isinstance(said, dict) else {}


def _outermost(folders: Iterable[Path]) -> list[Path]:
    """Folders that lie in none of the others: an agent may write files of the same names into its own folder."""
    found: list[Path] = []
    for folder in sorted(set(folders), key=lambda path: path.parts):
        if not any(folder.is_relative_to(outer) for outer in found[-1:]):
            found.append(folder)
    return found


def _order(run: StoredRun, order: Mapping[str, int]) -> tuple[int, str, tuple[int, str], int]:
    judged = run.judgement
    return (order.get(judged.scenario, len(order)), judged.scenario, agent_order(judged.agent), judged.repeat)


FIX_ROWS = ("buggy", "only-", "fixed", "without-")
"""Prefixes of a specimen's variants, from broken to repaired."""

SINGLE_FIX = ("only-", "without-")
"""Variants with one fix only, and with all fixes but one."""


def agent_order(agent: str) -> tuple[int, str]:
    """Sort key: specimens first, from broken to repaired; then all others by name."""
    return next(((n, agent) for n, start in enumerate(FIX_ROWS) if agent.startswith(start)), (len(FIX_ROWS), agent))


def _facts(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
