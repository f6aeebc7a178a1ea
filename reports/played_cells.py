"""What was measured of each scenario and agent, over all repeats: the input of every comparison."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.verdict import Level
from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.history_numbers import RunNumbers
from wedgehog.reports.result_category import ResultCategory, result_category

Key = tuple[str, str]
"""Scenario and agent."""

DECIDED: tuple[ResultCategory, ...] = ("passed", "known", "failed")
"""Results of a run that was judged, from best to worst. Only such runs are measured."""
UNDECIDED: tuple[ResultCategory, ...] = ("inconclusive", "error")
STARTS = ("start_s", "start_least_s")
"""A repeat without a request has none."""
RECOVERIES = ("recovery_calls", "recovery_usd")
"""A repeat without a recovery message has none."""

Categorize = Callable[[Judgement], ResultCategory]
"""`result_category`, or `verdict_category` where the verdict counts whatever is expected."""


@dataclass(frozen=True)
class PlayedCell:
    """All repeats of one scenario and agent. The numbers are one per decided repeat, or none (a price is unknown).

    Those of passed repeats stand first, then those of known failures.
    """

    scenario: str
    agent: str
    results: Mapping[str, int]
    """How many repeats ended so: `{passed: 2, failed: 1}`."""
    expected_fails: int = 0
    """How many of the passed repeats are fails that the scenario expects."""
    violated: tuple[str, ...] = ()
    always_violated: tuple[str, ...] | None = ()
    """What each failed repeat violates, known failures included; None: an older baseline does not say it."""
    unanswered: tuple[float, ...] = ()
    """Messages that need an answer and got none."""
    paid_calls: tuple[float, ...] = ()
    usd: tuple[float, ...] = ()
    turn_s: tuple[float, ...] = ()
    turn_least_s: tuple[float, ...] = ()
    """The same without the time for which the agent waited for a processor; empty: not known."""
    other_turns_s: tuple[float, ...] = ()
    """All turns but the longest, with the recovery message."""
    other_turns_least_s: tuple[float, ...] = ()
    recovery_calls: tuple[float, ...] = ()
    """One per decided repeat that had a recovery message."""
    recovery_usd: tuple[float, ...] = ()
    start_s: tuple[float, ...] = ()
    """One per decided repeat that has a start; a repeat without a request has none."""
    start_least_s: tuple[float, ...] = ()
    passed_with: Mapping[str, int] = field(default_factory=dict)
    """Of numbers that not each repeat has: how many of them are of passed repeats."""
    not_kept: tuple[str, ...] = ()
    """What the baseline of this cell does not have, because it is older."""
    bound_s: float | None = None
    """The time that a turn may take; None: not known, or not the same for all repeats."""
    level: Level | None = None
    """The level of its verdicts; None: not known, or not the same for all repeats."""
    busy: float | None = None
    """For which share of its turns the harness waited for a processor, by the median; None: not known."""
    at_least: bool = False
    """Whether calls and cost of a repeat are lower bounds: the agent was stopped. A baseline does not say it."""
    says: Mapping[str, str] = field(default_factory=dict)
    """By result: the sentence of its first repeat."""
    as_expected: bool | None = None
    """Whether each failed repeat is as the scenario expects; None if nothing failed or nothing is expected."""

    @property
    def repeats(self) -> int:
        """The repeats that count."""
        return sum(self.results.values())

    @property
    def decided(self) -> int:
        """The repeats with a verdict."""
        return sum(self.results.get(name, 0) for name in DECIDED)

    @property
    def undecided(self) -> int:
        """The repeats that are inconclusive or an error."""
        return sum(self.results.get(name, 0) for name in UNDECIDED)

    @property
    def is_pass(self) -> bool:
        """Whether each repeat passed; an expected fail is no pass."""
        return self.worst == "passed" and not self.undecided and not self.expected_fails

    @property
    def failures(self) -> tuple[float, ...]:
        """1 for each failed repeat, 0 for each other decided one."""
        failed = self.results.get("failed", 0)
        return (1.0,) * failed + (0.0,) * (self.decided - failed)

    @property
    def worst(self) -> str:
        """The worst result of a decided repeat."""
        return next((name for name in reversed(DECIDED) if self.results.get(name)), "")

    def reads(self) -> str:
        """`passed 3 of 3`, or `passed 2, failed 1 of 3`; the best result first."""
        parts = [f"{name} {number}" for name in (*DECIDED, *UNDECIDED) if (number := self.results.get(name))]
        return f"{', '.join(parts)} of {self.repeats}"


def cells_of(campaign: StoredCampaign, category: Categorize = result_category) -> dict[Key, PlayedCell]:
    """The cells of a campaign, in its order; skipped runs and cells of the fix matrix are left out."""
    found: dict[Key, list[StoredRun]] = {}
    for run in campaign.runs:
        if category(run.judgement) not in ("skipped", "shown"):
            found.setdefault((run.judgement.scenario, run.judgement.agent), []).append(run)
    return {key: _cell(key, runs, campaign.numbers, category) for key, runs in found.items()}


def skipped_of(campaign: StoredCampaign) -> dict[Key, str]:
    """What a campaign skipped, and played in no repeat: scenario and agent, with the reason."""
    played = {(run.judgement.scenario, run.judgement.agent) for run in campaign.runs if not run.judgement.skipped}
    skipped = (run.judgement for run in campaign.runs if run.judgement.skipped)
    reasons = {(it.scenario, it.agent): it.skipped for it in skipped}
    return {key: reason for key, reason in reasons.items() if key not in played}


def _cell(key: Key, runs: Iterable[StoredRun], numbers: Mapping[Path, RunNumbers], category: Categorize) -> PlayedCell:
    runs = sorted(runs, key=lambda run: run.judgement.repeat)
    by_result: dict[str, StoredRun] = {}
    for run in runs:
        by_result.setdefault(category(run.judgement), run)
    best_first = [run for result in DECIDED for run in runs if category(run.judgement) == result]
    decided = [numbers[run.folder] for run in best_first if numbers[run.folder].recorded]
    passed = {id(numbers[run.folder]) for run in best_first if category(run.judgement) == "passed"}
    rows, started = [it.columns for it in decided], [it for it in decided if it.columns["start_s"] is not None]
    recovered = [it for it in decided if it.recovery_calls is not None]
    failed = [run.judgement for run in runs if category(run.judgement) in ("known", "failed")]
    return PlayedCell(
        *key,
        results=Counter(category(run.judgement) for run in runs),
        expected_fails=sum(run.judgement.verdict == "fail" for run in runs if category(run.judgement) == "passed"),
        violated=tuple(sorted({name for run in runs for name in run.judgement.violated})),
        always_violated=_in_each([judged.violated for judged in failed]),
        unanswered=_whole([it.unanswered for it in decided]),
        paid_calls=_column(rows, "paid_calls"),
        usd=_column(rows, "cost_usd"),
        turn_s=_column(rows, "turn_s"),
        turn_least_s=_whole([it.turn_least_s for it in decided]),
        other_turns_s=_whole([it.other_turns_s for it in decided]),
        other_turns_least_s=_whole([it.other_turns_least_s for it in decided]),
        recovery_calls=_whole([it.recovery_calls for it in recovered]),
        recovery_usd=_whole([it.recovery_usd for it in recovered]),
        start_s=_column([it.columns for it in started], "start_s"),
        start_least_s=_whole([it.start_least_s for it in started]),
        passed_with=dict.fromkeys(STARTS, sum(id(it) in passed for it in started))
        | dict.fromkeys(RECOVERIES, sum(id(it) in passed for it in recovered)),
        bound_s=_common({it.bound_s for it in decided}),
        level=_one_level({run.judgement.level for run in best_first}),
        busy=round(median(it.busy for it in decided), 2) if decided else None,
        at_least=any(row["at_least"] for row in rows),
        says={result: run.judgement.says for result, run in by_result.items()},
        as_expected=_all_as_expected({it.judgement.as_expected for it in runs if category(it.judgement) == "failed"}),
    )


def _in_each(violated: Sequence[Iterable[str]]) -> tuple[str, ...]:
    return tuple(sorted(set(violated[0]).intersection(*violated[1:]))) if violated else ()


def _common(bounds: set[float | None]) -> float | None:
    (bound, *others) = bounds or {None}
    return None if others or bound is None else round(bound, 3)


def _one_level(levels: set[Level]) -> Level | None:
    return next(iter(levels)) if len(levels) == 1 else None


def _all_as_expected(found: set[bool | None]) -> bool | None:
    return False if False in found else (True if found == {True} else None)


def _column(rows: Iterable[Mapping[str, Any]], name: str) -> tuple[float, ...]:
    return _whole([row[name] for row in rows])


def _whole(values: Sequence[Any]) -> tuple[float, ...]:
    """The numbers; none at all if one is missing, because a part would be another sample."""
    return () if None in values else tuple(float(value) for value in values)
