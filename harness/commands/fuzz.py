"""`wedgehog fuzz`: searches for scenarios that break an agent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.status import Status

from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.campaign.campaign import Campaign
from wedgehog.harness.campaign.options import NoProgress, OpenCampaign, Options
from wedgehog.harness.campaign.plan import World
from wedgehog.harness.commands.fuzz_report import FuzzReport, alike_findings
from wedgehog.harness.faults.base import registered
from wedgehog.harness.record.clock import Clock, WallClock
from wedgehog.harness.record.expectation import did_you_mean
from wedgehog.harness.record.store import safe_name
from wedgehog.harness.run.simulated.sim_player import why_not_in_virtual_time
from wedgehog.harness.search.capabilities import Capabilities
from wedgehog.harness.search.corpus import Corpus, Finding
from wedgehog.harness.search.drawn_scenario import compaction_probe
from wedgehog.harness.search.found import Found
from wedgehog.harness.search.in_one_process import RUN_SEED
from wedgehog.harness.search.long_runs import BESIDE
from wedgehog.harness.search.player import Player
from wedgehog.harness.search.search import Objective, Search
from wedgehog.harness.search.sim_search import SimSearch, Simulated
from wedgehog.harness.sim.errors import LIVE

NO_HYPOTHESIS = "a search in virtual time needs Hypothesis: pip install 'wedgehog[fuzz]'"


@dataclass(frozen=True)
class FuzzOptions:
    """What the command line asks for."""

    agents: tuple[AgentSpec, ...]
    named: tuple[str, ...]
    """The agents as the user named them: a replay command repeats them."""
    budget_s: float
    folder: Path
    objective: Objective | None = None
    again: bool = False
    world: World | None = None
    """None: the simulated one if every agent can run there."""
    jobs: int | None = None
    """None: two for each processor live, and one in virtual time, where the same seed then finds the same."""
    most: int | None = None
    """How many scenarios are drawn at most, in virtual time."""
    also: tuple[str, ...] = ()
    """Faults to draw that only gateways show."""
    live: bool = False
    """Whether each failure that was found in virtual time is played live too."""


class _NotInVirtualTimeError(Exception):
    """A search in virtual time is not possible; one line."""


class LiveLine:
    """A live line on a terminal; each new failure is a line of its own."""

    def __init__(self, console: Console, status: Status | None, clock: Clock, ends_s: float) -> None:
        """`ends_s` is the end of the budget on the clock."""
        self._console, self._status, self._clock, self._ends_s = console, status, clock, ends_s
        self._tried = 0

    def say(self, line: str) -> None:
        """Print one message."""
        self._console.print(f"wedgehog: {line}", markup=False)

    def tries(self, what: str) -> None:
        """Count a scenario."""
        self._tried += 1
        if self._status is not None:
            left = max(0, round(self._ends_s - self._clock.now()))
            self._status.update(f"{self._tried} played, {left} s left; {what}"[: self._console.width - 4])

    def found(self, finding: Finding) -> None:
        """Print a failure."""
        self._console.print(f"✗ {', '.join(finding.violated)}: {finding.path}", markup=False)

    def gone(self, name: str) -> None:
        """Print what passes now."""
        self._console.print(f"✓ {name} passes now", markup=False)


class Fuzz:
    """One search from the command line."""

    def __init__(self, asked: FuzzOptions, options: Options, console: Console) -> None:
        """The folder of the corpus is named after the agents."""
        self.asked, self.options, self._console = asked, options, console
        name = "-".join(safe_name(_full_name(agent)) for agent in asked.agents)
        self._folder = asked.folder / name
        self.search: Search | None = None
        self.clock: Clock = WallClock()

    async def run(self) -> None:
        """Play the control runs, then search until the budget is used. Errors: ValueError if a control run failed."""
        ends_s = self.clock.now() + self.asked.budget_s
        try:
            if self._console.is_terminal and not self._console.no_color:
                with self._console.status("control run") as status:
                    await self._run(LiveLine(self._console, status, self.clock, ends_s), ends_s)
            else:
                await self._run(LiveLine(self._console, None, self.clock, ends_s), ends_s)
        except AgentError as wrong:
            raise ValueError(str(wrong)) from None

    async def _run(self, watcher: LiveLine, ends_s: float) -> None:
        """Search in virtual time if that is possible, or asked for; else live."""
        if self.asked.world != "live" and (why := await self._why_not_simulated(watcher, ends_s)):
            if self.asked.world == "sim":
                raise ValueError(why)
            watcher.say(f"searching live: {why}")
        if self.search is None:
            await self._search("live", watcher, ends_s)
        elif self.asked.live:
            await self._play_live(self.search.result.findings, watcher)

    async def _why_not_simulated(self, watcher: LiveLine, ends_s: float) -> str:
        """Search in virtual time, or say why that is not possible."""
        if why := self._why_live():
            return why
        try:
            await self._search("sim", watcher, ends_s)
        except _NotInVirtualTimeError as wrong:
            return str(wrong)
        return ""

    def _why_live(self) -> str:
        """Why there is no search in virtual time; empty if there can be one."""
        if found := next(filter(None, (why_not_in_virtual_time(None, agent) for agent in self.asked.agents)), ""):
            return found
        return "" if find_spec("hypothesis") else NO_HYPOTHESIS

    async def _search(self, world: World, watcher: LiveLine, ends_s: float) -> None:
        campaign = Campaign([], self.campaign_options(world), NoProgress(), watcher.say)
        async with campaign.opened(self.asked.agents) as opened:
            controls = [await opened.control(agent) for agent in self.asked.agents]
            for agent, control in zip(self.asked.agents, controls, strict=True):
                if not control.passed:
                    wrong = f"the control run of {agent.name} failed: {control.says}"
                    raise _NotInVirtualTimeError(wrong) if world == "sim" and LIVE in wrong else ValueError(wrong)
            agents = tuple(zip(self.asked.agents, controls, strict=True))
            capabilities = Capabilities.common([Capabilities.of(agent, control) for agent, control in agents])
            capabilities = replace(capabilities, also=self.asked.also)
            player = self._player(campaign, opened)
            if (probe := compaction_probe(capabilities)) is not None:
                capabilities = replace(
                    capabilities, compacts=not any(it.skipped for it in (await player.play(probe)).judgements)
                )
            corpus = Corpus(self._folder, "tried-sim" if opened.sim else "tried")
            if self.asked.again:
                corpus.forget()
            kind = partial(SimSearch, Simulated(opened.sim, agents, self.asked.most)) if opened.sim else Search
            self.search = kind(
                player.play,
                capabilities,
                corpus,
                watcher,
                self.clock,
                seed=self.options.seed,
                ends_s=ends_s,
                objective=self.asked.objective,
            )
            await self.search.run(self._jobs(world))

    def _player(self, campaign: Campaign, opened: OpenCampaign) -> Player:
        folder = campaign.store.folder / "drawn"
        return Player(opened.play, self.asked.agents, campaign.store.run_folder, folder)

    async def _play_live(self, findings: Sequence[Finding], watcher: LiveLine) -> None:
        """Play the smallest scenario of each failure live, as `wedgehog run` does, and keep the result."""
        smallest = [alike[0] for alike in alike_findings(findings)]
        if not smallest:
            return
        campaign = Campaign([], replace(self.options, world="live", seed=RUN_SEED), NoProgress(), watcher.say)
        async with campaign.opened(self.asked.agents) as opened:
            player = self._player(campaign, opened)
            for number, finding in enumerate(smallest, 1):
                watcher.tries(f"live, {number} of {len(smallest)}: {finding.path.stem}")
                played = await player.play({**finding.document, "name": finding.path.stem})
                finding.live = finding.shown_live(played)

    def campaign_options(self, world: World) -> Options:
        """How the scenarios are played; with an objective no turn is stopped before its time.

        The seed draws scenarios. They are played with the stock one, as `wedgehog run` plays what is found.
        """
        until_certain = world == "live" and self.asked.objective is None
        beside = BESIDE * self._jobs(world)
        return replace(self.options, world=world, seed=RUN_SEED, beside=beside, until_certain=until_certain)

    def _jobs(self, world: World) -> int:
        """Live scenarios mostly wait; simulated ones never do."""
        return self.options.jobs if self.asked.jobs is None and world == "live" else self.asked.jobs or 1

    def lines(self) -> Iterator[str]:
        """What was tried and found, for the terminal."""
        if self.search is not None:
            asked = self.asked
            report = FuzzReport(
                self.search, asked.named, asked.objective, self._folder, names_agents=len(asked.agents) > 1
            )
            yield from report.lines()

    @property
    def exit_code(self) -> int:
        """1 for a failure, 3 if nothing could be decided, else 0."""
        found = self.search.result if self.search is not None else Found()
        return 1 if found.findings else 0 if found.tried > len(found.unclear) else 3


def _full_name(agent: AgentSpec) -> str:
    """A variant of a specimen with its family: many specimens have one called `fixed`."""
    return agent.name if agent.name.startswith(agent.family) else f"{agent.family}@{agent.name}"


def budget_s(text: str) -> float:
    """The budget after `--budget`. Errors: ValueError, which names the option."""
    try:
        return seconds(text)
    except ValueError as wrong:
        raise ValueError(f"--budget: {wrong}") from None


def seconds(text: str) -> float:
    """A time such as `60s`, `5m`, `1h` or `90`, in seconds. Errors: ValueError."""
    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        found = float(number) * units[unit]
    except ValueError:
        found = 0.0
    if not 0 < found < 1e6:
        raise ValueError(f"expected a time such as 60s, 5m or 1h, found {text!r}")
    return found


def known_faults(names: Sequence[str]) -> tuple[str, ...]:
    """The same names. Errors: ValueError for one that no fault has."""
    for name in names:
        if name not in registered():
            raise ValueError(f"--also: no fault is called {name!r}{did_you_mean(name, registered())}")
    return tuple(names)
