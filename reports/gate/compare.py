"""`wedgehog compare A B`: two runs, two versions or two agents; what got worse, better, new or gone."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from wedgehog.harness.record.store import check_run_folder, safe_name
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.gate.baseline import Baseline, read_baseline, settings_of
from wedgehog.reports.gate.baseline_cell import TIMES
from wedgehog.reports.gate.difference import KIND_SIGNS, KIND_WORDS, KINDS, Difference
from wedgehog.reports.gate.differences import differences, unchanged, unfinished, worst_first
from wedgehog.reports.gate.quantities import QUANTITIES
from wedgehog.reports.gate.side_notes import side_notes
from wedgehog.reports.markdown import escaped
from wedgehog.reports.played_cells import Categorize, Key, PlayedCell, cells_of, skipped_of
from wedgehog.reports.result_category import result_category, verdict_category
from wedgehog.reports.totals import total_lines
from wedgehog.reports.words import many, one_line


@dataclass(frozen=True)
class ComparedSide:
    """One side of a comparison: its name as the user wrote it, and its results."""

    name: str
    cells: Mapping[Key, PlayedCell]
    unfinished: tuple[Difference, ...] = ()
    """Its runs without a verdict."""
    skipped: Mapping[Key, str] = field(default_factory=dict)
    """What it skipped, with the reason."""
    settings: Baseline = field(default_factory=Baseline)
    """The world in which it was played; of a stored baseline its floors and its rate of false alarms too."""

    @property
    def agents(self) -> tuple[str, ...]:
        """Its agents, in order."""
        return tuple(dict.fromkeys(agent for _, agent in self.cells))


def read_sides(before: str, after: str, within: Path) -> tuple[ComparedSide, ComparedSide]:
    """Both sides, by their verdicts; or if one is a baseline, both by what counts for the gate, as it is kept there."""
    stored = Path(before).is_file() or Path(after).is_file()
    category = result_category if stored else verdict_category
    return _side(before, within, category), _side(after, within, category)


def _side(name: str, within: Path, category: Categorize) -> ComparedSide:
    """A run's folder, `FOLDER:AGENT`, a baseline, or an agent of the run `within`. ValueError: it is none of them."""
    place = Path(name)
    if place.is_dir():
        check_run_folder(place)
        campaign = load(place.resolve())
        found = unfinished(campaign, campaign.unfinished)
        return _played(name, cells_of(campaign, category), settings_of(campaign), found, skipped_of(campaign))
    if place.is_file():
        baseline = read_baseline(place)
        return _played(name, baseline.played, baseline)
    folder, _, agent = name.rpartition(":")
    if folder and Path(folder).is_dir():
        return _of_agent(name, agent, Path(folder), category)
    if within.is_dir():
        return _of_agent(name, name, within, category)
    raise ValueError(f"{name}: expected a run's folder, FOLDER:AGENT, a baseline, or an agent of {within}")


def _shown(name: str) -> str:
    """A path as seen from here, or of one elsewhere its last part: a report is read on other machines too."""
    path = Path(name)
    if not path.is_absolute():
        return name
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else path.name


def _played(
    name: str,
    cells: Mapping[Key, PlayedCell],
    settings: Baseline,
    open_runs: Iterable[Difference] = (),
    skipped: Mapping[Key, str] = MappingProxyType({}),
) -> ComparedSide:
    if not cells:
        raise ValueError(f"{name}: no finished run in this folder")
    return ComparedSide(_shown(name), cells, tuple(open_runs), skipped, settings)


def _of_agent(name: str, agent: str, folder: Path, category: Categorize) -> ComparedSide:
    campaign = load(folder.resolve())
    whole = cells_of(campaign, category)
    cells = {key: cell for key, cell in whole.items() if key[1] == agent}
    if not cells:
        agents = ", ".join(sorted({found for _, found in whole})) or "no agent"
        raise ValueError(f"{name}: no run's folder, and no agent of {folder}, which has {agents}")
    open_runs = [run for run in campaign.unfinished if _may_be_of(agent, run.folder)]
    found, settings = unfinished(campaign, open_runs), settings_of(campaign)
    skipped = {key: reason for key, reason in skipped_of(campaign).items() if key[1] == agent}
    return ComparedSide(_shown(name), cells, tuple(found), skipped, settings)


def _may_be_of(agent: str, folder: Path) -> bool:
    """By the name of a run's folder. Runs that were never begun have none, and may be of each agent."""
    number = folder.name.rpartition(".")[2]
    return folder.name in ("plan.json", safe_name(agent), safe_name(f"{agent}.{number}"))


def compared(before: ComparedSide, after: ComparedSide) -> list[Difference]:
    """What differs, the worst first. Agents of other names are matched: one with one, or versions of one runtime."""
    given, other = before.settings, after.settings
    if other.cells and not given.cells:  # A stored baseline says what counts, on whichever side it stands.
        given, other = other, given
    quantities = given.quantities(other.world or "")
    compared = differences(*_alike(before, after), given.false_alarms, quantities, *_skipped(before, after))
    return worst_first([*compared, *after.unfinished])


def _alike(before: ComparedSide, after: ComparedSide) -> tuple[dict[Key, PlayedCell], dict[Key, PlayedCell]]:
    """The cells of both sides, with the same names for agents that stand for each other where both have a cell."""
    names = _matched(before.agents, after.agents)
    both = [(s, old) for s, old in before.cells if old in names and (s, names[old]) in after.cells]
    return (
        _renamed(before.cells, {(s, old): _pair(old, names[old]) for s, old in both}),
        _renamed(after.cells, {(s, names[old]): _pair(old, names[old]) for s, old in both}),
    )


def _skipped(before: ComparedSide, after: ComparedSide) -> tuple[dict[Key, str], dict[Key, str]]:
    """What the later and the earlier side skipped, by the names that the agents have on the other side.

    What another agent skips is only not played: it may never have had what the scenario needs. Another version had it.
    """
    names = _matched(before.agents, after.agents)
    olds = {new: old for old, new in names.items() if old.partition("@")[0] == new.partition("@")[0]}
    return (
        {(scenario, olds.get(new, new)): reason for (scenario, new), reason in after.skipped.items()},
        {(scenario, names.get(old, old)): reason for (scenario, old), reason in before.skipped.items()},
    )


def _matched(before: tuple[str, ...], after: tuple[str, ...]) -> dict[str, str]:
    """The agents that have another name on the other side, with that name. Each stands for one at most."""
    if len(before) == len(after) == 1 and before != after:
        return {before[0]: after[0]}
    by_runtime = {agent.partition("@")[0]: agent for agent in after if agent not in before}
    alone = {agent.partition("@")[0]: agent for agent in before if agent not in after}
    return {agent: by_runtime[name] for name, agent in alone.items() if name in by_runtime}


def _pair(old: str, new: str) -> str:
    return f"{old} → {new}"


def _renamed(cells: Mapping[Key, PlayedCell], names: Mapping[Key, str]) -> dict[Key, PlayedCell]:
    renamed = (replace(cell, agent=names.get(key, key[1])) for key, cell in cells.items())
    return {(cell.scenario, cell.agent): cell for cell in renamed}


# ---- words


def compare_lines(before: ComparedSide, after: ComparedSide, found: list[Difference]) -> Iterator[str]:
    """The totals of both sides, one line per difference, and the sum."""
    for side in (before, after):
        yield from (f"{side.name}: {line}" for line in _totals(side))
    yield from (f"note: {note}" for note in _notes(before, after, found))
    yield ""
    for it in found:
        yield f"{KIND_SIGNS[it.kind]} {KIND_WORDS[it.kind]}: {it.where}: {one_line(it.says)}"
    yield _sum(before, after, found)


def compare_markdown(before: ComparedSide, after: ComparedSide, found: list[Difference]) -> Iterator[str]:
    """The same as a Markdown page."""
    yield f"## {escaped(before.name)} → {escaped(after.name)}"
    yield ""
    for side in (before, after):
        yield from (f"- {escaped(side.name)}: {escaped(line)}" for line in _totals(side))
    yield from (f"- Note: {escaped(note)}" for note in _notes(before, after, found))
    yield ""
    if found:
        yield from ("| | scenario | agent | what |", "| --- | --- | --- | --- |")
    for it in found:
        kind = f"{KIND_SIGNS[it.kind]} {KIND_WORDS[it.kind]}"
        yield f"| {kind} | {escaped(it.scenario)} | {escaped(it.agent)} | {escaped(it.says)} |"
    yield from ("", escaped(_sum(before, after, found)))


def _notes(before: ComparedSide, after: ComparedSide, found: Iterable[Difference]) -> Iterator[str]:
    old, new = _alike(before, after)
    pairs = [(old[key], new[key]) for key in old if key in new]
    yield from side_notes(before.settings, after.settings, pairs, (before.name, after.name))
    times = [QUANTITIES[name].name for name in TIMES]
    if after.settings.cells and any(it.kind == "worse" and any(name in it.says for name in times) for it in found):
        yield f"{after.name} is a baseline, which keeps no waits for a processor: they may explain a longer time"


def _totals(side: ComparedSide) -> Iterator[str]:
    """The total of each agent, without the agent's name where the name of the side says it."""
    named = f"{side.agents[0]}: " if len(side.agents) == 1 and side.name.endswith(side.agents[0]) else ""
    return (line.removeprefix(named) for line in total_lines(side.cells.values()))


def _sum(before: ComparedSide, after: ComparedSide, found: list[Difference]) -> str:
    numbers = {kind: sum(it.kind == kind for it in found) for kind in KINDS}
    parts = [f"{number} {KIND_WORDS[kind]}" for kind, number in numbers.items() if number]
    old, new = _alike(before, after)
    common = old.keys() & new.keys()
    same = len(unchanged(common, found))
    return ", ".join([*parts, f"{same} of {many(len(common), 'common result')} alike"])
