"""Read a campaign's folder: what ran, the finished runs, and the unfinished ones."""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from wedgehog.harness.record.files import read_object
from wedgehog.harness.record.judgement import read_judgement
from wedgehog.harness.record.store import StoredRun, read_run
from wedgehog.harness.record.verdict import Verdict
from wedgehog.reports.facts import RunFacts, facts_of, kept_facts
from wedgehog.reports.history_numbers import RunNumbers

NO_FAMILY = "scenarios"

OF_SCENARIOS = ("families", "whys", "tags")
"""Keys of campaign.json that describe scenarios; reports show all other keys as they are."""

CONTROL = "control"
"""The folder of the agents' control runs. They have no judgement."""


@dataclass(frozen=True)
class Unfinished:
    """A run without a readable judgement, or all that were never begun; and the reason."""

    folder: Path
    why: str
    runs: int = 1


@dataclass(frozen=True)
class StoredCampaign:
    """All input of a report. `description` is campaign.json; `controls` are the folders of the control runs."""

    folder: Path
    description: Mapping[str, Any]
    runs: tuple[StoredRun, ...]
    numbers: Mapping[Path, RunNumbers]
    """By the folder of the run. The runs hold no history: each use of one reads it again."""
    unfinished: tuple[Unfinished, ...] = ()
    controls: tuple[Path, ...] = ()

    @property
    def lost(self) -> int:
        """How many runs are unfinished."""
        return sum(it.runs for it in self.unfinished)

    @cached_property
    def families(self) -> Mapping[str, str]:
        """Scenario → family, in the order of the campaign."""
        return _mapping(self.description.get("families"))

    @cached_property
    def whys(self) -> Mapping[str, str]:
        """Scenario → its `why`."""
        return _mapping(self.description.get("whys"))

    @property
    def edited(self) -> list[str]:
        """A line for each program that was edited while the campaign played."""
        files = self.description.get("edited")
        names = dict.fromkeys(map(str, files)) if isinstance(files, list) else ()
        return [f"{name} was edited while the campaign played: not all runs tested the same program" for name in names]

    def family(self, scenario: str) -> str:
        """The family of a scenario; `NO_FAMILY` if it has none."""
        return self.families.get(scenario, NO_FAMILY)

    def tags(self, scenario: str) -> tuple[str, ...]:
        """The tags of a scenario; older campaigns have none."""
        said = self.description.get("tags")
        kept = said.get(scenario) if isinstance(said, dict) else None
        return tuple(map(str, kept)) if isinstance(kept, list) else ()

    def place(self, path: Path) -> str:
        """A path relative to the campaign's folder; as text, since pathlib takes ten times as long."""
        return str(path).removeprefix(f"{self.folder}/")


def load(folder: Path, with_facts: Callable[[StoredRun, RunFacts], None] = lambda run, facts: None) -> StoredCampaign:
    """Read the folder of a campaign, finished or not, or of a single run; raise ValueError if there is none.

    `with_facts` gets each finished run with its facts, of which only the numbers are kept.
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
                run, kept = _with_facts(place)
                numbers[place] = kept.numbers.unless_skipped(run.judgement)
                with_facts(run, kept)
                runs.append(_light(run, verdicts))
            except (ValueError, OSError) as wrong:
                unfinished.append(Unfinished(place, f"it can't be read: {wrong}"))
        elif place not in controls:
            unfinished.append(Unfinished(place, "the run ended before it was judged"))
    unfinished += _never_begun(folder, len(begun) - len(controls))
    description = _description(folder / "campaign.json")
    order = {scenario: number for number, scenario in enumerate(_mapping(description.get("families")))}
    ordered = sorted(runs, key=lambda run: _order(run, order))
    return StoredCampaign(folder, description, tuple(ordered), numbers, tuple(unfinished), tuple(controls))


def _with_facts(folder: Path) -> tuple[StoredRun, RunFacts]:
    """A run and its facts: those beside its history if they fit, else those of its history. Errors as `read_run`."""
    if facts := kept_facts(folder):
        return StoredRun(folder, read_judgement(folder)), facts
    run = read_run(folder)
    return run, facts_of(run.history)


def _never_begun(folder: Path, begun: int) -> list[Unfinished]:
    """The runs of plan.json that have no folder, as one entry."""
    plan = folder / "plan.json"
    if not plan.is_file():
        return []
    try:
        planned = sum(len(cell["repeats"]) for cell in read_object(plan)["cells"])
    except (ValueError, TypeError, KeyError):
        return [Unfinished(plan, "the plan of the campaign can't be read")]
    left = planned - begun
    return [Unfinished(plan, f"{left:,} of {planned:,} runs were never begun", left)] if left > 0 else []


def _run_folders(campaign: Path) -> tuple[frozenset[Path], list[Path]]:
    """The folders of judged runs, and of all runs that were begun, by name."""
    judged, begun = [], []
    for place, _, files in os.walk(campaign):
        if "verdicts.json" in files:
            judged.append(place)
        if "history.jsonl" in files:
            begun.append(place)
    finished = _outermost(judged)
    return frozenset(map(Path, finished)), [Path(place) for place in _outermost([*finished, *begun])]


def _light(run: StoredRun, verdicts: dict[Verdict, Verdict]) -> StoredRun:
    """The run without its history; equal verdicts of all runs are one object."""
    shared = tuple(verdicts.setdefault(verdict, verdict) for verdict in run.judgement.verdicts)
    return StoredRun(run.folder, replace(run.judgement, verdicts=shared))


def _mapping(said: object) -> dict[str, str]:
    return {str(key): str(value) for key, value in said.items()} if isinstance(said, dict) else {}


def _outermost(folders: Iterable[str]) -> list[str]:
    """Folders that lie in none of the others: an agent may write files of the same names into its own folder."""
    found: list[str] = []
    for folder in sorted(set(folders), key=lambda path: path.replace(os.sep, "\0")):
        if not found or not f"{folder}/".startswith(f"{found[-1]}/"):
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


def _description(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
