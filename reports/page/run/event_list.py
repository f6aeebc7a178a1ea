"""The events of a run as an ordered list in the page; each item can be linked to, and says what it violates."""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from wedgehog.harness.record.history import History
from wedgehog.reports.calls import stops
from wedgehog.reports.event_lines import event_lines
from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.page.run.timeline_svg import event_id, place_id
from wedgehog.reports.words import many, seconds

FIRST, LAST = 120, 60
"""A longer list leaves out events in its middle, but none that is evidence shown in a verdict."""

STOPS, BEFORE_STOP, BEHIND_STOP = 20, 6, 14
"""Of the first stops of turns, so many events before and behind are kept as well."""


@dataclass(frozen=True)
class ListedEvents:
    """What the list shows: events as (time, sentence, id), and numbers of events that are left out between them."""

    lines: tuple[tuple[float, str, int] | int, ...]
    total: int

    @property
    def ids(self) -> frozenset[int]:
        """The events in the list."""
        return frozenset(line[2] for line in self.lines if not isinstance(line, int))


def listed(history: History, bad: Collection[int], linked: Collection[int]) -> ListedEvents:
    """The events of a run in order, at their times of the run.

    All of `linked` are in the list, and what came around the stop of a turn; those in `bad` also if they are of a kind
    that the list leaves out.
    """
    lines = [(history.events[event].at_s, says, event) for _, says, event in event_lines(history, also=bad)]
    near = _near_stops(history, [event for _, _, event in lines])
    kept: list[tuple[float, str, int] | int] = []
    for number, line in enumerate(lines):
        if not FIRST <= number < len(lines) - LAST or line[2] in linked or number in near:
            kept.append(line)
        elif kept and isinstance(kept[-1], int):
            kept[-1] += 1
        else:
            kept.append(1)
    return ListedEvents(tuple(kept), len(lines))


def _near_stops(history: History, ids: Sequence[int]) -> frozenset[int]:
    """The places in the list around what stopped a turn."""
    places = (bisect_left(ids, stop) for stop in islice(stops(history), STOPS))
    return frozenset(place for at in places for place in range(at - BEFORE_STOP, at + BEHIND_STOP))


def event_list(run: str, shown: ListedEvents, bad: Mapping[int, str], placed: Collection[int]) -> Markup | None:
    """The folded list. `bad` says what an event violates; `placed` are the events that the timeline shows."""
    if not shown.lines:
        return None
    items = [
        _gap(line) if isinstance(line, int) else _item(run, line, bad.get(line[2], ""), placed=line[2] in placed)
        for line in shown.lines
    ]
    words = f"The run as a list: {many(shown.total, 'event')} in order"
    summary = tag("summary", words, tag("small", " (the numbers of minor events are skipped)"))
    return tag("details", summary, tag("ol", items, class_="events"), class_="more")


def _gap(left_out: int) -> Markup:
    return tag("li", f"{many(left_out, 'event')} left out here; history.jsonl holds all", class_="gap")


def _item(run: str, line: tuple[float, str, int], violated: str, *, placed: bool) -> Markup:
    at_s, says, event = line
    time = tag("span", seconds(max(at_s, 0.0)), class_="at")
    if not violated:
        return tag("li", time, f"#{event} {says}", id=event_id(run, event))
    words = tag("strong", f" {violated} ")
    back = tag("a", "in the timeline", href=f"#{place_id(run, event)}") if placed else None
    told = tag("span", f"#{event} {says}", words, back)
    return tag("li", time, told, id=event_id(run, event), class_="violating")
