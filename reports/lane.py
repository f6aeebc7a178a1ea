"""The lanes of a timeline: spans and moments, in as many rows as they need. `lanes` makes them of a history."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from wedgehog.harness.record.events.base import Event

MOST_ROWS = 5
"""Spans of a lane that overlap lie in so many rows; what needs more shares the last one."""


@dataclass(frozen=True, slots=True)
class LaneItem:
    """A span, or a moment (`end_s` is None). `tone` is a CSS class; `events` are the ids that it stands for."""

    start_s: float
    end_s: float | None
    tone: str
    says: str
    events: tuple[int, ...]
    label: str = ""
    """A few characters to write into the span, or the sign of the moment."""
    row: int = 0
    whole: bool = True
    """False for a part of the span before it, which has the same row."""

    @property
    def until_s(self) -> float:
        """The end; of a moment, itself."""
        return self.start_s if self.end_s is None else self.end_s


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane of the timeline."""

    name: str
    items: tuple[LaneItem, ...]

    @property
    def rows(self) -> int:
        """How many rows it needs."""
        return 1 + max((item.row for item in self.items), default=0)


def events_in(shown: Iterable[Lane]) -> frozenset[int]:
    """The ids of all events that have a place in some lanes."""
    return frozenset(event for lane in shown for item in lane.items for event in item.events)


def span_of(shown: Iterable[Lane]) -> float:
    """The last moment of some lanes, in seconds of the run; above 0."""
    return max((item.until_s for lane in shown for item in lane.items), default=0.0) or 1e-3


def moment(event: Event, tone: str, sign: str, says: str) -> LaneItem:
    """The moment of an event."""
    return LaneItem(event.at_s, None, tone, says, (event.id,), sign)


def packed(items: Sequence[LaneItem], most_rows: int) -> tuple[LaneItem, ...]:
    """The items in order, each in the first row that is free at its start."""
    free_s: list[float] = []
    placed: list[LaneItem] = []
    row = 0
    for item in items:
        if item.whole and item.end_s is not None:
            row = next((n for n, until in enumerate(free_s) if until <= item.start_s), len(free_s))
            row = min(row, most_rows - 1)
            free_s += [0.0] * (row + 1 - len(free_s))
            free_s[row] = max(free_s[row], item.end_s)
        at = row if not item.whole or item.end_s is not None else 0
        placed.append(replace(item, row=at))
    return tuple(placed)
