"""Other runs of the same agent on the page, and what they show that one run alone does not."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from wedgehog.harness.record.events.run import AgentStarted
from wedgehog.harness.record.history import History
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.page.answers.hang_ups import OtherCall, SlowCall, slow_call, timers_fired
from wedgehog.reports.page.answers.named_limits import ErrorEnd, error_end
from wedgehog.reports.page.answers.turn_exits import TurnExit, turn_exit

MOST_READ = 40
"""So many other runs are looked at for one run."""


@dataclass(frozen=True, slots=True)
class KeptOfRun:
    """What is kept of one run, so that its history need not be."""

    entry_hash: str
    time_scale: float
    slow: SlowCall | None
    exit: TurnExit | None
    error: ErrorEnd | None


def kept_of(history: History) -> KeptOfRun:
    """What is kept of the run with this history."""
    started = history.first(AgentStarted)
    return KeptOfRun(
        started.entry_hash if started is not None else "",
        history.run.time_scale,
        slow_call(history),
        turn_exit(history),
        error_end(history),
    )


@dataclass(frozen=True)
class RelatedRun:
    """Another run whose agent has the same entry file."""

    judgement: Judgement
    address: str
    """The id of its section in the page; empty if it has none."""
    kept: KeptOfRun


class RelatedRuns:
    """The runs of a page by their number. Each history is read once, and only if another run asks for it."""

    def __init__(self, runs: Sequence[tuple[int, StoredRun, str]]) -> None:
        """`runs`: number, run, and the id of its section. Of repeats the first one stands for all."""
        first: dict[tuple[str, str], tuple[int, StoredRun, str]] = {}
        for number, run, address in sorted(runs, key=lambda it: it[0]):
            first.setdefault((run.judgement.scenario, run.judgement.agent), (number, run, address))
        self._runs = [it for it in first.values() if not it[1].judgement.skipped]
        self._kept: dict[int, KeptOfRun | None] = {}

    def of(self, run: StoredRun) -> "RelatedTo":
        """The other runs of this run's agent."""
        return RelatedTo(self, run)

    def like(self, run: StoredRun, *, variants: bool) -> Iterator[RelatedRun]:
        """Runs with the same entry file: of the same agent in other scenarios, or of its variants in this one."""
        mine, file = run.judgement, _entry_hash(run.history)
        if not file:
            return
        near = [it for it in self._runs if _is_near(it[1].judgement, mine, variants=variants)]
        for number, other, address in near[:MOST_READ]:
            kept = self._read(number, other)
            if kept is not None and kept.entry_hash == file:
                yield RelatedRun(other.judgement, address, kept)

    def _read(self, number: int, run: StoredRun) -> KeptOfRun | None:
        if number not in self._kept:
            try:
                self._kept[number] = kept_of(run.again().history)
            except (OSError, ValueError):
                self._kept[number] = None
        return self._kept[number]


@dataclass(frozen=True)
class RelatedTo:
    """What other runs show of one run's agent."""

    runs: RelatedRuns
    run: StoredRun

    @cached_property
    def _elsewhere(self) -> list[RelatedRun]:
        return list(self.runs.like(self.run, variants=False))

    @property
    def slow_calls(self) -> list[OtherCall]:
        """Calls in other scenarios whose bytes kept arriving."""
        return [
            OtherCall(said.scenario, it.address, it.kept.time_scale, it.kept.slow, timers_fired(said.remarks))
            for it in self._elsewhere
            for said in (it.judgement,)
            if it.kept.slow is not None
        ]

    @property
    def exits(self) -> list[tuple[str, str, TurnExit]]:
        """How turns ended in other scenarios: scenario, address, exit."""
        found = [(it.judgement.scenario, it.address, it.kept.exit) for it in self._elsewhere]
        return [(scenario, address, its) for scenario, address, its in found if its is not None]

    @property
    def errors(self) -> list[tuple[str, str, ErrorEnd]]:
        """How the agent's variants ended in this scenario: agent, address, end."""
        variants = self.runs.like(self.run, variants=True)
        found = [(it.judgement.agent, it.address, it.kept.error) for it in variants]
        return [(agent, address, its) for agent, address, its in found if its is not None]


def _is_near(other: Judgement, mine: Judgement, *, variants: bool) -> bool:
    if variants:
        return other.scenario == mine.scenario and other.agent != mine.agent
    return other.agent == mine.agent and other.scenario != mine.scenario


def _entry_hash(history: History) -> str:
    started = history.first(AgentStarted)
    return started.entry_hash if started is not None else ""
