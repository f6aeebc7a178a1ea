"""plan.json: all runs of a campaign and how they are played, so that an interrupted campaign can go on.

    wedgehog run --resume RUN

The plan names scenario and agent files by path and by the hash of their text: all runs of a campaign are of one text.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from wedgehog.harness.agents.programs import changed, programs_of
from wedgehog.harness.campaign.campaign_files import CampaignFiles
from wedgehog.harness.campaign.campaign_json import wedgehog_version
from wedgehog.harness.campaign.selection import Entry, check_invariant
from wedgehog.harness.campaign.stored import stored_agent
from wedgehog.harness.network.base import NetworkName
from wedgehog.harness.record.expectation import first_mistake
from wedgehog.harness.record.files import write_whole
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import CampaignStore, first_result, read_run
from wedgehog.harness.record.verdict import Level
from wedgehog.harness.run.plugins import hashed
from wedgehog.harness.scenario.document import BadFileError
from wedgehog.harness.scenario.scenario_file import load_scenario

FILE = "plan.json"
ANEW = "begin a new campaign"

World = Literal["live", "sim"]


class ResumeError(ValueError):
    """A campaign cannot be resumed; one line."""


@dataclass(frozen=True)
class PlannedCell:
    """One scenario with one agent, and its repeats."""

    scenario_path: str
    scenario_hash: str
    agent_path: str
    agent_hash: str
    agent: str
    level: Level
    matrix_only: bool
    repeats: tuple[int, ...]

    def entry(self, repeat: int) -> Entry:
        """One of its runs. Errors: BadFileError, ResumeError if a file has another text than it had then."""
        file = load_scenario(_existing(self.scenario_path), check_invariant)
        _check(self.scenario_path, CampaignFiles().scenario_hash(file), self.scenario_hash)
        agent_path = _existing(self.agent_path)
        _check(self.agent_path, CampaignFiles().agent_hash(agent_path), self.agent_hash)
        inputs = {"agent": self.agent, "agent_path": self.agent_path, "level": self.level}
        return Entry(file, stored_agent(agent_path.parent, inputs), self.matrix_only, repeat)


@dataclass(frozen=True)
class Plan:
    """All runs of a campaign, and how they are played."""

    wedgehog: str
    """The version that plays it: another one may judge differently."""
    network: NetworkName
    world: World
    seed: int
    turn_s: float | None
    plugins: Mapping[str, str]
    """Each file or module of a plugin, and the sha256 of the file."""
    programs: Mapping[str, str]
    """Each file that an agent runs, and its sha256."""
    cells: tuple[PlannedCell, ...]

    def write(self, folder: Path) -> None:
        """Write plan.json."""
        write_whole(folder / FILE, json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    def entries(self) -> list[Entry]:
        """All runs, in the order of the campaign. Errors: BadFileError, ResumeError."""
        found = [replace(cell.entry(1), repeat=repeat) for cell in self.cells for repeat in cell.repeats]
        _check_files(programs_of(entry.agent for entry in found), self.programs, "this program of an agent")
        return found

    def check_plugins(self) -> None:
        """ResumeError if a plugin has another text than it had then. To be called before the plugins are loaded."""
        _check_files(hashed(self.plugins), self.plugins, "this plugin")


_PLAN: TypeAdapter[Plan] = TypeAdapter(Plan)


def cells_of(entries: Iterable[Entry], files: CampaignFiles) -> tuple[PlannedCell, ...]:
    """The entries as cells, each with its repeats."""
    found: dict[tuple[Path, Path, str], list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.cell, []).append(entry)
    return tuple(_cell(group, files) for group in found.values())


def _cell(group: Sequence[Entry], files: CampaignFiles) -> PlannedCell:
    file, agent = group[0].file, group[0].agent
    return PlannedCell(
        scenario_path=str(file.path.absolute()),
        scenario_hash=files.scenario_hash(file),
        agent_path=str(agent.path.absolute()),
        agent_hash=files.agent_hash(agent.path),
        agent=agent.name,
        level=agent.level,
        matrix_only=group[0].matrix_only,
        repeats=tuple(entry.repeat for entry in group),
    )


def _existing(path: str) -> Path:
    if not Path(path).is_file():
        raise ResumeError(f"{path}: no such file; the campaign was begun with it")
    return Path(path)


def _check(path: str, found: str, planned: str) -> None:
    if found != planned:
        raise ResumeError(
            f"{path}: its text has changed since the campaign began; restore it (the folder of each run that was begun "
            f"has a copy), or {ANEW}"
        )


def _check_files(found: Mapping[str, str], planned: Mapping[str, str], what: str) -> None:
    if names := changed(found, planned):
        how = "has changed since" if all(map(found.get, names)) else "is not found where it was when"
        raise ResumeError(f"{', '.join(names)}: {what} {how} the campaign began; restore it, or {ANEW}")


@dataclass(frozen=True)
class Resumed:
    """An interrupted campaign: its folder, all of its runs, and the judgements of the finished ones."""

    store: CampaignStore
    plan: Plan
    entries: tuple[Entry, ...]
    finished: Mapping[tuple[str, str, int], Judgement]

    def is_finished(self, entry: Entry) -> bool:
        """Whether this run needs no playing."""
        return key(entry) in self.finished

    def clear(self, say: Callable[[str], None]) -> None:
        """Remove what is left of runs that did not end, or that a crash of the machine left unreadable.

        Hold the folder before. ResumeError: another process has finished a run since it was read.
        """
        lost = 0
        for entry in self.entries:
            folder = self.store.run_folder(*key(entry))
            shutil.rmtree(first_result(folder), ignore_errors=True)
            if not self.is_finished(entry) and folder.exists():
                if _judged(folder) is not None:
                    raise ResumeError(f"{self.store.folder}: another process has just played it; try again")
                shutil.rmtree(folder)
                lost += 1
        total, left = len(self.entries), len(self.entries) - len(self.finished)
        again = f", {lost} of them begun before" if lost else ""
        say(f"{self.store.folder}: {len(self.finished):,} of {total:,} runs are finished; {left:,} to play{again}")


def key(entry: Entry) -> tuple[str, str, int]:
    """What tells a run from all others of its campaign."""
    return entry.file.scenario.name, entry.agent.name, entry.repeat


def read_plan(folder: Path) -> Plan:
    """The plan of a campaign's folder. Errors: ResumeError."""
    if not folder.is_dir():
        raise ResumeError(f"{folder}: no such folder; expected that of a campaign, such as runs/latest")
    path = folder / FILE
    if not path.is_file():
        one = "the folder of one run; expected that of its campaign" if (folder / "inputs.json").is_file() else ""
        raise ResumeError(f"{folder}: {one or f'no {FILE} in it; only a campaign of `wedgehog run` can go on'}")
    try:
        return _PLAN.validate_json(path.read_bytes())
    except ValidationError as wrong:
        raise ResumeError(f"{path}: damaged: {first_mistake(wrong)}") from None


def take_up(folder: Path) -> Resumed:
    """Read an interrupted campaign, or a finished one. Errors: BadFileError, ResumeError."""
    plan, ours = read_plan(folder), wedgehog_version()
    if plan.wedgehog != ours:
        raise ResumeError(f"{folder}: begun by Wedgehog {plan.wedgehog}, and this is {ours}: {ANEW}")
    store, entries = CampaignStore.reopen(folder), tuple(plan.entries())
    store.description()
    places = {key(entry): store.run_folder(*key(entry)) for entry in entries}
    finished = {which: judged for which, place in places.items() if (judged := _judged(place)) is not None}
    return Resumed(store, plan, entries, finished)


def _judged(folder: Path) -> Judgement | None:
    """The judgement of a finished run; None if its files can't be read."""
    try:
        return read_run(folder).judgement
    except (BadFileError, OSError, ValueError):
        return None
