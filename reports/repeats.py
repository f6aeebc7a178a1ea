"""Repeats with the same result as one row: `pass 3 of 3`, with the largest number of each."""

from collections.abc import Sequence
from typing import Any

from wedgehog.reports.words import missing

_ALIKE = ("scenario", "agent", "standing", "reads", "violated")
LARGEST = (
    *("paid_calls", "refused_calls", "tokens_billed", "tokens_delivered", "cost_usd", "calls_s"),
    *("peak_calls_per_min", "peak_usd_per_min", "start_s", "turn_s", "first_error_s", "recovery_s"),
)


def folded(rows: Sequence[dict[Any, Any]]) -> list[dict[Any, Any]]:
    """The rows with one for all repeats of a scenario and agent that ended alike; `reads` says how many they are."""
    groups: dict[tuple[Any, ...], list[dict[Any, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in _ALIKE), []).append(row)
    played: dict[tuple[Any, Any], int] = {}
    for row in rows:
        played[row["scenario"], row["agent"]] = played.get((row["scenario"], row["agent"]), 0) + 1
    return [_one(alike, played[alike[0]["scenario"], alike[0]["agent"]]) for alike in groups.values()]


def flaky(rows: Sequence[dict[Any, Any]]) -> list[str]:
    """A line for each scenario and agent of which some repeats passed and others failed."""
    standings: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        standings.setdefault((row["scenario"], row["agent"]), []).append(row["standing"])
    return [
        f"flaky: {scenario}, {agent} passed {played.count('passed')} of {len(played)} repeats"
        for (scenario, agent), played in standings.items()
        if {"passed", "failed"} <= set(played)
    ]


def _one(rows: Sequence[dict[Any, Any]], played: int) -> dict[Any, Any]:
    if played == 1:
        return rows[0]
    shared = {name: _largest([row[name] for row in rows]) for name in LARGEST}
    least = any(row["at_least"] is True for row in rows)
    reads = f"{rows[0]['reads']} {len(rows)} of {played}"
    return rows[0] | shared | {"at_least": least, "reads": reads, "repeat": 1}


def _largest(values: Sequence[Any]) -> Any:
    """The largest value; a missing price makes the sum of a group unknown, as everywhere."""
    known = [value for value in values if not missing(value)]
    return max(known) if known else None
