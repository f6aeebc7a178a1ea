"""Repeats with the same result as one row: `pass 3 of 3`, with the largest number of each."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from wedgehog.reports.groups import grouped
from wedgehog.reports.rows import RunRow

SPENT = (
    *("paid_calls", "refused_calls", "tokens_billed", "tokens_delivered", "cost_usd", "calls_s"),
    *("peak_calls_per_min", "peak_usd_per_min"),
)
WAITED = ("start_s", "turn_s", "first_error_s", "recovery_s")


def cell_of(row: RunRow) -> tuple[str, str]:
    """What the repeats of a run share: its scenario and its agent."""
    return row.scenario, row.agent


def folded(rows: Iterable[RunRow]) -> list[RunRow]:
    """The rows with one for all repeats of a scenario and agent that ended alike; `reads` says how many they are."""
    rows = list(rows)
    played = Counter(map(cell_of, rows))
    return [_one(alike, played[cell_of(alike[0])]) for alike in grouped(rows, _alike).values()]


def _alike(row: RunRow) -> tuple[str, ...]:
    return (*cell_of(row), row.standing, row.reads, row.violated)


def flaky(rows: Iterable[RunRow]) -> list[str]:
    """A line for each scenario and agent of which some repeats passed and others failed."""
    standings = {cell: [row.standing for row in alike] for cell, alike in grouped(rows, cell_of).items()}
    return [
        f"flaky: {scenario}, {agent} passed {played.count('passed')} of {len(played)} repeats"
        for (scenario, agent), played in standings.items()
        if {"passed", "failed"} <= set(played)
    ]


def _one(rows: Sequence[RunRow], played: int) -> RunRow:
    if played == 1:
        return rows[0]
    shared = {name: largest(rows, name) for name in (*SPENT, *WAITED)}
    least = any(row.at_least for row in rows)
    reads = f"{rows[0].reads} {len(rows)} of {played}"
    return replace(rows[0], **shared, at_least=least, reads=reads, repeat=1)


def largest(rows: Iterable[RunRow], name: str) -> Any:
    """The largest number of a column; None if all are missing."""
    return max((value for row in rows if (value := getattr(row, name)) is not None), default=None)
