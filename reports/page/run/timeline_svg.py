"""The timeline of a run as static SVG. Places are in percent, so it fits each width and its text keeps its size."""

import math
from collections.abc import Collection, Iterator, Sequence

from wedgehog.reports.lane import Lane, LaneItem, span_of
from wedgehog.reports.markup import Markup, tag

ROW, PAD, AXIS = 15, 5, 20
"""Pixels: the height of a row, the space above and below the rows of a lane, the height of a clock."""

TICKS = 6
LABEL_FROM = 4.0
"""A span has its label inside from so many percent of the width for each two characters."""

WORDS_UP_TO = 60
"""In a lane with more items only those that matter have words of their own; the list of events has all."""

_LEGEND = (
    ("wait", "waiting for the model"),
    ("stream", "reply arrives"),
    ("refused", "refused"),
    ("tool", "tool, page, query"),
    ("timer", "the agent's timer"),
    ("armed", "fault armed"),
    ("fault", "fault, kill"),
    ("stop", "limit of the user or harness"),
)


def place_id(run: str, event: int) -> str:
    """The id of an event's place in the timeline."""
    return f"{run}-p{event}"


def event_id(run: str, event: int) -> str:
    """The id of an event in the list."""
    return f"{run}-e{event}"


def timeline_figure(
    run: str,
    lanes: Sequence[Lane],
    bad: Collection[int],
    listed: Collection[int],
    time_scale: float = 1.0,
    clock: str = "",
) -> Markup | None:
    """The lanes with their clocks.

    `run` is the id of the run's section, `bad` are the violating events, `listed` those in the list of events.
    `clock` says what the times are, unless they are real ones.
    """
    if not lanes:
        return None
    drawn = _Drawn(run, frozenset(bad), listed, span_of(lanes))
    tops, bottom = _tops(lanes)
    two = time_scale != 1
    shapes = [
        *drawn.grid(bottom),
        *(shape for lane, top in zip(lanes, tops, strict=True) for shape in drawn.lane(lane, top)),
        *drawn.clock(14, 1.0),
        *(drawn.clock(bottom + 14, time_scale) if two else ()),
    ]
    height = bottom + (AXIS if two else 0)
    names = [tag("li", lane.name, style=f"height:{_height(lane)}px") for lane in lanes]
    picture = tag("svg", shapes, height=height, role="group", aria_label="Timeline; the list of events says the same")
    caption = clock or ("Above real seconds, below the scenario's own seconds." if two else "Seconds of the run.")
    return tag(
        "figure",
        tag("div", tag("ul", names, class_="lane-names", aria_hidden="true"), picture, class_="lanes"),
        tag("figcaption", caption, " ", *_legend(lanes, bad), class_="soft"),
        class_="timeline",
    )


def _height(lane: Lane) -> int:
    return lane.rows * ROW + 2 * PAD


def _tops(lanes: Sequence[Lane]) -> tuple[list[int], int]:
    tops, y = [], AXIS
    for lane in lanes:
        tops.append(y)
        y += _height(lane)
    return tops, y


def _legend(lanes: Sequence[Lane], bad: Collection[int]) -> Iterator[Markup]:
    tones = {tone for lane in lanes for item in lane.items for tone in item.tone.split()}
    for tone, words in _LEGEND:
        if tone in tones:
            yield tag("span", tag("i", class_=tone), words, class_="key")
    if bad:
        yield tag(
            "span", tag("i", class_="bad-sign"), "evidence against an invariant, or why it is undecided", class_="key"
        )


class _Drawn:
    """Draws the lanes of one run from its start on."""

    def __init__(self, run: str, bad: frozenset[int], listed: Collection[int], span_s: float) -> None:
        self.run, self.bad, self.listed, self.span_s = run, bad, listed, span_s
        self.placed: set[int] = set()

    def x(self, at_s: float) -> float:
        """A moment in percent of the width; a margin keeps the signs at both ends inside."""
        return 1.0 + 98.0 * at_s / self.span_s

    # ---- clocks

    def grid(self, bottom: int) -> Iterator[Markup]:
        for tick_s in _ticks(self.span_s):
            at = _percent(self.x(tick_s))
            yield tag("line", x1=at, x2=at, y1=AXIS - 2, y2=bottom, class_="grid")

    def clock(self, y: int, scale: float) -> Iterator[Markup]:
        """One label at each tick; a second clock has ticks at the same places."""
        for number, tick_s in enumerate(_ticks(self.span_s)):
            anchor = "start" if number == 0 else "end" if self.x(tick_s) > 94 else "middle"
            at = _percent(self.x(tick_s))
            yield tag("text", _clock_words(tick_s * scale), x=at, y=y, text_anchor=anchor, class_="tick")

    # ---- lanes

    def lane(self, lane: Lane, top: int) -> Iterator[Markup]:
        yield tag("line", x1="0", x2="100%", y1=top, y2=top, class_="rule")
        wordy = len(lane.items) <= WORDS_UP_TO
        drawn: set[tuple[object, ...]] = set()
        # What violates is drawn last, so that nothing lies on its link.
        for item in sorted(lane.items, key=lambda item: not self.bad.isdisjoint(item.events)):
            bad = [event for event in item.events if event in self.bad]
            look = (_percent(self.x(item.start_s)), item.tone, item.row, item.end_s is None)
            if not (wordy or bad or item.events) and look in drawn:
                continue  # it would lie on one that is drawn already
            drawn.add(look)
            yield self._item(item, top + PAD + item.row * ROW, bad, words=wordy or bool(bad))

    def _item(self, item: LaneItem, y: int, bad: Sequence[int], *, words: bool) -> Markup:
        title = tag("title", item.says) if words else None
        shapes = list(self._moment(item, y) if item.end_s is None else self._span(item, y, item.end_s))
        if not bad:
            return tag("g", title, shapes, class_=item.tone)
        known = next((event for event in bad if event in self.listed), None)
        href = None if known is None else f"#{event_id(self.run, known)}"
        linked = tag("a" if href else "g", title, shapes, self._sign(item, y), href=href)
        for event in sorted(set(bad) - self.placed):
            linked = tag("g", linked, id=place_id(self.run, event))
        self.placed.update(bad)
        return tag("g", linked, class_=f"{item.tone} violating")

    def _span(self, item: LaneItem, y: int, end_s: float) -> Iterator[Markup]:
        x, width = self.x(item.start_s), self.x(end_s) - self.x(item.start_s)
        yield tag("rect", x=_percent(x), y=y + 1, width=_percent(max(width, 0.15)), height=ROW - 3, rx=2)
        if item.label and width > LABEL_FROM * (1 + len(item.label)) / 2:
            yield tag("text", item.label, x=_percent(x), dx=4, y=y + ROW - 5, class_="label")

    def _moment(self, item: LaneItem, y: int) -> Iterator[Markup]:
        at = _percent(self.x(item.start_s))
        yield tag("line", x1=at, x2=at, y1=y, y2=y + ROW - 1)
        yield tag("text", item.label, x=at, y=y + ROW - 4, text_anchor="middle", class_="sign")

    def _sign(self, item: LaneItem, y: int) -> Markup:
        """A triangle above what violates, so that the colour does not stand alone."""
        return tag("text", "▼", x=_percent(self.x(item.start_s)), y=y + 3, text_anchor="middle", class_="bad-sign")


def _percent(number: float) -> str:
    return f"{number:.2f}%"


def _ticks(span_s: float) -> list[float]:
    """Round moments from 0 on, at most `TICKS` of them."""
    raw_s = span_s / (TICKS - 1)
    size = 10.0 ** math.floor(math.log10(raw_s))
    step_s = next(size * part for part in (1, 2, 5, 10) if size * part >= raw_s * 0.999)
    return [n * step_s for n in range(int(span_s / step_s * 1.0001) + 1)]


def _clock_words(at_s: float) -> str:
    if at_s >= 600:
        return f"{at_s / 60:,.0f} min"
    return "0 s" if at_s == 0 else f"{at_s * 1000:g} ms" if at_s < 0.0995 else f"{at_s:.4g} s"
