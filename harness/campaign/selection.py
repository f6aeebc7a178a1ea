"""Selects the runs of a campaign: scenarios by name, folder or file; agents, variants, the fix matrix."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path

from wedgehog.harness.agents.known_runtimes import UnknownRuntimeError, ready
from wedgehog.harness.agents.spec import AgentSpec, load_spec, variants
from wedgehog.harness.campaign.known_failures import check_known, with_unknown
from wedgehog.harness.invariants import InvariantError, find
from wedgehog.harness.record.expectation import did_you_mean
from wedgehog.harness.record.verdict import Level
from wedgehog.harness.run.skip_reasons import MINUTES
from wedgehog.harness.scenario.document import BadFileError
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.scenario.scenario_file import ScenarioFile, find_scenarios, load_scenario


class UsageError(Exception):
    """A request on the command line can't be fulfilled; one line."""


@dataclass(frozen=True)
class Entry:
    """One scenario with one agent. `matrix_only`: a cell of the fix matrix of which nothing is expected."""

    file: ScenarioFile
    agent: AgentSpec
    matrix_only: bool = False
    repeat: int = 1

    @property
    def cell(self) -> tuple[Path, Path, str]:
        """What its repeats share: the files of scenario and agent, and the agent's variant."""
        return self.file.path, self.agent.path, self.agent.name

    @property
    def own(self) -> bool:
        """Whether the scenario's expectations hold for this agent: an incident's are for its own agents only."""
        folder = self.file.agents_folder
        return folder is None or self.agent.here == folder.absolute()

    @property
    def scenario(self) -> Scenario:
        """The scenario as it holds for this agent; see `for_others`."""
        return self.file.scenario if self.own else for_others(self.file.scenario)


def for_others(scenario: Scenario) -> Scenario:
    """An incident's scenario for foreign agents: without expectations and bounds that only a fix promises."""
    stock = {name: given for name, given in scenario.invariants.items() if not _asks_more(name, given)}
    return scenario.model_copy(update={"expect": {}, "invariants": stock})


def _asks_more(name: str, given: Mapping[str, object] | None) -> bool:
    """Whether a scenario that names this invariant gets more than its usual verdict; `off` does not."""
    return find(name).asked or (given is not None and "asked" in find(name).parameters)


@dataclass(frozen=True)
class Wanted:
    """What the command line asks for."""

    scenarios: tuple[str, ...] = ()
    """Files, folders, stock names; empty: the stock incidents' core, or the catalogue if agents are named."""
    agents: tuple[str, ...] = ()
    """Spec files; empty: those of each scenario's incident folder."""
    everything: bool = False
    """With the scenarios outside the core, and the fix matrix."""
    words: str = ""
    """Only scenarios with one of these words in their name or tags."""
    repeat: int = 1
    level: Level | None = None
    """Another level than that of the specs."""


def stock_folder() -> Path:
    """The scenarios that ship with Wedgehog."""
    return Path(str(files("wedgehog.scenarios")))


def stock_incidents() -> tuple[str, ...]:
    """Names of the stock incidents; each stands for all of its scenarios."""
    folder = stock_folder() / "incidents"
    return tuple(sorted(path.name for path in folder.iterdir() if (path / "scenarios").is_dir()))


def select(wanted: Wanted) -> list[Entry]:
    """All requested runs, scenario by scenario. Errors: BadFileError; UsageError if a name is wrong or nothing fits."""
    found = [load_scenario(path, check_invariant) for path in _paths(wanted)]
    if not wanted.scenarios and not wanted.everything:
        first = "starter" if wanted.agents else "core"
        found = [file for file in found if first in file.scenario.tags]
    chosen = [file for file in found if _has_word(file, wanted.words)]
    if not chosen:
        raise UsageError(f"no scenario matches {wanted.words!r}" if wanted.words else "no scenario to play")
    _unique(chosen)
    played = [file.path for file in chosen]
    try:
        entries = _each_once([entry for file in chosen for entry in _with_agents(file, wanted)])
    except BadFileError as bad:
        raise with_unknown(bad, played, stock_folder()) from None
    if not entries:
        raise UsageError("these scenarios expect nothing of any agent: name one with --agent SPEC")
    specs = {entry.agent.path: entry.agent for entry in entries if entry.agent.known}
    check_known(specs.values(), played, stock_folder())
    entries = [replace(entry, agent=entry.agent.at_level(wanted.level)) for entry in entries]
    return [replace(entry, repeat=n) for entry in entries for n in range(1, wanted.repeat + 1)]


def without_minutes(entries: Sequence[Entry], wanted: Wanted) -> tuple[list[Entry], list[str]]:
    """The runs for the live world: without scenarios that take minutes, unless asked for; and the names of these."""
    named = {path.resolve() for path in map(path_of_name, wanted.scenarios) if path.is_file()}
    if any(MINUTES in word for word in wanted.words.lower().split()):
        return list(entries), []
    long = [it for it in entries if MINUTES in it.scenario.tags and it.file.path.resolve() not in named]
    return [it for it in entries if it not in long], list(dict.fromkeys(it.scenario.name for it in long))


def _paths(wanted: Wanted) -> Iterator[Path]:
    usual = stock_folder() / ("catalogue" if wanted.agents else "incidents")
    places = [path_of_name(name) for name in wanted.scenarios] or [usual]
    found = (path for place in places for path in find_scenarios(place))
    yield from {path.resolve(): path for path in found}.values()


def path_of_name(name: str) -> Path:
    """A path that exists, else a stock incident or scenario of that name, as `wedgehog scenarios` lists it or alone."""
    given = Path(name)
    name = name.rstrip("/")
    if given.exists():
        return given
    stock = {incident: stock_folder() / "incidents" / incident for incident in stock_incidents()}
    for path in stock_folder().glob("incidents/*/scenarios/*.yaml"):
        stock |= {path.stem: path, f"{path.parts[-3]}/{path.stem}": path}
    for path in stock_folder().glob("catalogue/*.yaml"):
        stock |= {path.stem: path, f"catalogue/{path.stem}": path}
    stock |= {name: stock_folder() / name for name in ("incidents", "catalogue")}
    if name in stock:
        return stock[name]
    near = get_close_matches(name, stock, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else f"; stock incidents are {', '.join(stock_incidents())}"
    raise UsageError(f"no scenario file, folder or stock name {name!r}{hint}")


def check_invariant(name: str, parameters: Mapping[str, object] | None) -> str:
    """What is wrong with an invariant's name or parameters in a scenario file; empty if nothing is."""
    try:
        find(name).accept(parameters or {})
    except InvariantError as wrong:
        return str(wrong)
    return ""


def _has_word(file: ScenarioFile, words: str) -> bool:
    text = " ".join((file.scenario.name, file.family, *file.scenario.tags)).lower()
    return not words or any(word in text for word in words.lower().replace(",", " ").split())


def _unique(chosen: Sequence[ScenarioFile]) -> None:
    seen: dict[str, Path] = {}
    for file in chosen:
        other = seen.setdefault(file.scenario.name, file.path)
        if other != file.path:
            raise BadFileError(file.path, None, f"the name {file.scenario.name!r} is taken by {other}")


def _each_once(entries: Sequence[Entry]) -> list[Entry]:
    """Repeated entries are played once; two agents of one name are an error: they would share a run's folder."""
    found: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        other = found.setdefault((entry.scenario.name, entry.agent.name), entry).agent.path
        if other != entry.agent.path and other.resolve() != entry.agent.path.resolve():
            raise BadFileError(entry.agent.path, None, f"the name {entry.agent.name!r} is taken by {other}")
    return list(found.values())


def _with_agents(file: ScenarioFile, wanted: Wanted) -> Iterator[Entry]:
    if wanted.agents:
        for name in wanted.agents:
            for agent in variants(named_agent(name)):
                yield Entry(file, agent)
        return
    expected = file.scenario.expect
    core_only = not wanted.scenarios and not wanted.everything
    families = [variants(spec) for spec in _specs(file.agents_folder)]
    _all_known(file, {agent.name for family in families for agent in family})
    for family in families:
        if not any(agent.name in expected for agent in family):
            continue
        known = {frozenset(agent.chosen) for agent in family if agent.name in expected}
        for agent in family:
            if agent.name in expected and (not core_only or agent.name.startswith(("buggy", "fixed"))):
                yield Entry(file, agent)
            elif wanted.everything and agent.name not in expected and frozenset(agent.chosen) not in known:
                # (Taking its one fix out of a set leaves the buggy one: that cell would say nothing new.)
                yield Entry(file, agent, matrix_only=True)


def _all_known(file: ScenarioFile, names: set[str]) -> None:
    for name in file.scenario.expect:
        if names and name not in names:
            hint = did_you_mean(name, names)
            raise BadFileError(file.path, None, f"expect: no agent of this incident is called {name!r}{hint}")


@cache
def _specs(folder: Path | None) -> tuple[AgentSpec, ...]:
    return tuple(load_spec(path) for path in sorted(folder.glob("*.yaml"))) if folder else ()


def named_agent(name: str) -> AgentSpec:
    """The spec in a file, its variant `FILE@fixed`, or an installed runtime. Errors: BadFileError, UsageError."""
    path = Path(name)
    shadowed = path.is_dir() and path.name == name  # A folder such as `codex` hides no runtime.
    if path.suffix in (".yaml", ".yml") or (path.exists() and not shadowed):
        return load_spec(path)
    file, _, variant = name.rpartition("@")
    if Path(file).suffix in (".yaml", ".yml"):
        return _variant(load_spec(Path(file)), variant)
    if path.name != name:
        raise UsageError(f"no agent spec {name!r}: no such file")
    try:
        return ready(name)
    except UnknownRuntimeError as wrong:
        raise UsageError(f"no agent spec {name!r}: expected a YAML file or a known runtime; {wrong}") from None


def _variant(spec: AgentSpec, wanted: str) -> AgentSpec:
    """The variant of a specimen, by its name with or without the spec's suffix."""
    known = {agent.name.removesuffix(spec.suffix): agent for agent in variants(spec)} if spec.fixes else {}
    if found := known.get(wanted) or known.get(wanted.removesuffix(spec.suffix)):
        return found
    hint = did_you_mean(wanted, known) if known else "; it has no fixes"
    raise UsageError(f"{spec.path}: no variant {wanted!r}{hint}")
