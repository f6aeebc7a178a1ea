"""How a run used the database: its queries, and their share of the time."""

from dataclasses import dataclass

from wedgehog.harness.record.events.service import StoreAsked
from wedgehog.harness.record.history import History
from wedgehog.reports.words import many, seconds


@dataclass(frozen=True, slots=True)
class DatabaseUse:
    """Queries in the scenario's turns (without the recovery message), their time, and its share of the turns' time."""

    queries: int
    took_s: float
    share: float
    """0 to 1. The times of parallel queries are added up; the share is 1 at most."""

    def __str__(self) -> str:
        """`24 queries, 1.20 s, 41% of the turns' time`"""
        return f"{many(self.queries, 'query', 'queries')}, {seconds(self.took_s)}, {self.share:.0%} of the turns' time"


def database(history: History) -> DatabaseUse | None:
    """How a run used the database; None without a query."""
    turns = [turn for turn in history.turns if not turn.recovery and turn.end is not None]
    spans = [(turn.start_s, turn.end.at_s) for turn in turns if turn.end is not None]
    mine = [event for event in history.of(StoreAsked) if any(start <= event.at_s <= end for start, end in spans)]
    if not mine:
        return None
    took_s = sum(event.latency_s for event in mine)
    whole_s = sum(end - start for start, end in spans)
    return DatabaseUse(len(mine), took_s, min(1.0, took_s / whole_s) if whole_s > 0 else 0.0)
