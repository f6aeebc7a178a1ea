"""How long things took: the times of calls, tools, turns, errors and recoveries, and their quantiles over repeats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import floor
from typing import NamedTuple

from wedgehog.reports.campaign_folder import StoredCampaign

MEASURES = ("first byte", "call", "tool", "turn", "first error", "recovery")


class TimesKey(NamedTuple):
    """What was measured."""

    family: str
    scenario: str
    agent: str
    measure: str


TimesByKey = Mapping[TimesKey, Sequence[float]]
"""The seconds of all repeats. Recovery turns count only as recovery."""


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """How often something was measured, and its quantiles in seconds."""

    family: str
    scenario: str
    agent: str
    measure: str
    count: int
    p50: float
    p95: float
    p99: float
    max: float


LATENCY_COLUMNS = tuple(field.name for field in fields(LatencyRow))


def times(campaign: StoredCampaign) -> TimesByKey:
    """All measured times of a campaign."""
    found: dict[TimesKey, list[float]] = {}
    for judged, numbers in ((run.judgement, campaign.numbers[run.folder]) for run in campaign.runs):
        if not judged.skipped:
            of_run = campaign.family(judged.scenario), judged.scenario, judged.agent
            for measure, taken_s in numbers.times:
                found.setdefault(TimesKey(*of_run, measure), []).append(taken_s)
    return found


def latency(taken: TimesByKey) -> list[LatencyRow]:
    """Count, p50, p95, p99 and maximum of each measure, per scenario and agent."""
    measured = sorted(taken.items(), key=lambda item: MEASURES.index(item[0].measure))
    return [_row(what, sorted(seconds)) for what, seconds in measured]


def _row(what: TimesKey, seconds: Sequence[float]) -> LatencyRow:
    p50, p95, p99 = (quantile(seconds, part) for part in (0.5, 0.95, 0.99))
    return LatencyRow(*what, len(seconds), p50, p95, p99, seconds[-1])


def quantile(ordered: Sequence[float], part: float) -> float:
    """The value below which lies `part` of the sorted values; between two of them it is interpolated."""
    place = part * (len(ordered) - 1)
    below = floor(place)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    return low + (high - low) * (place - below)
