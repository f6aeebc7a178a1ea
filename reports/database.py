"""What our database was asked in a run, and how much of its turns' time that took."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wedgehog.harness.record.event import StoreAsked
from wedgehog.harness.record.history import History
from wedgehog.reports.words import NONE, many, missing, seconds


@dataclass(frozen=True, slots=True)
class DatabaseUse:
    """Queries of the scenario's turns (the recovery message is ours), their time, and its share of the turns'."""

    queries: int
    took_s: float
    share: float
    """0 to 1. Queries that ran side by side count each; more than the whole time is the whole."""

    def __str__(self) -> str:
        """`24 queries, 1.20 s, 41 % of the turns' time`"""
        return f"{many(self.queries, 'query', 'queries')}, {seconds(self.took_s)}, {self.share:.0%} of the turns' time"


def database(history: History) -> DatabaseUse | None:
    """How the database was used; None where nobody asked it."""
    turns = [turn for turn in history.turns if not turn.recovery and turn.end is not None]
    spans = [(turn.start_s, turn.end.at_s) for turn in turns if turn.end is not None]
    mine = [event for event in history.of(StoreAsked) if any(start <= event.at_s <= end for start, end in spans)]
    if not mine:
        return None
    took_s = sum(event.latency_s for event in mine)
    whole_s = sum(end - start for start, end in spans)
    return DatabaseUse(len(mine), took_s, min(1.0, took_s / whole_s) if whole_s > 0 else 0.0)


def asked(row: Mapping[Any, Any]) -> str:
    """The use of the database in one row of a table: `180 queries, 85% of the time`; a dash where there is none."""
    if missing(row["queries"]):
        return NONE
    return f"{many(int(row['queries']), 'query', 'queries')}, {row['queries_share']:.0%} of the time"
