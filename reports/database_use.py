"""How a run used our database, and the servers behind the spec's `links`."""

from collections import Counter
from dataclasses import dataclass

from wedgehog.harness.record.events.service import BackendClosed, BackendOpened, BackendUsed, StoreAsked
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


@dataclass(frozen=True, slots=True)
class BackendUse:
    """How a run used one link: its connections, how many of them a fault ended, and the bytes of its turns."""

    link: str
    connections: int
    broken: int
    turns: tuple[BackendUsed, ...]

    def __str__(self) -> str:
        """`tcp:db: 2 connections (1 ended by a fault); turn 1: 40 bytes up, 120 down`"""
        ended = f" ({self.broken:,} ended by a fault)" if self.broken else ""
        turns = (f"turn {it.turn}: {many(it.bytes_up, 'byte')} up, {it.bytes_down:,} down" for it in self.turns)
        return "; ".join([f"{self.link}: {many(self.connections, 'connection')}{ended}", *turns])


def backends(history: History) -> list[BackendUse]:
    """How a run used each of the spec's links that had a connection."""
    opened = Counter(it.link for it in history.of(BackendOpened))
    broken = Counter(it.link for it in history.of(BackendClosed) if it.by == "fault")
    turns = list(history.of(BackendUsed))
    return [
        BackendUse(link, count, broken[link], tuple(it for it in turns if it.link == link))
        for link, count in opened.items()
    ]
