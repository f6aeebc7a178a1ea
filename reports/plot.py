"""Plots as inline SVG: bars, and a count over time. Shapes stretch with the page; text is HTML and keeps its size."""

from collections.abc import Sequence
from dataclasses import dataclass

from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.words import seconds

WIDE, HIGH, TICK = 600.0, 120.0, 9.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its group, name, value and the words beside it."""

    group: str
    name: str
    value: float
    says: str


@dataclass(frozen=True, slots=True)
class Mark:
    """An event in a plot over time: a vertical line, or a small tick. `tone` is a CSS class."""

    at_s: float
    name: str
    tone: str
    small: bool = False


def bars(title: str, lines: Sequence[Bar]) -> Markup:
    """Horizontal bars on one scale from 0, under the names of their groups."""
    top = max((line.value for line in lines), default=0.0) or 1.0
    rows: list[Markup] = []
    group = ""
    for line in lines:
        if line.group != group:
            rows.append(tag("div", line.group, class_="bar-group"))
            group = line.group
        rows.append(
            tag(
                "div",
                tag("span", line.name, class_="bar-name"),
                _bar(line.value / top),
                tag("span", line.says, class_="bar-says"),
                class_="bar",
            )
        )
    return tag("figure", tag("figcaption", title), rows, class_="bars")


def _bar(part: float) -> Markup:
    width = f"{max(part * 100, 0.4 if part else 0):.2f}"
    shape = tag("rect", x=0, y=0, width=width, height=10)
    return tag("svg", shape, viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")


def growth(title: str, times_s: Sequence[float], end_s: float, marks: Sequence[Mark] = (), unit: str = "") -> Markup:
    """A count that grows by one at each of `times_s`; the axis goes from 0 to `end_s` seconds."""
    span = max([end_s, *times_s, 1e-6])
    x = [WIDE * at / span for at in sorted(times_s)]
    rise = HIGH / max(len(x), 1)
    path = f"M0 {HIGH:g}" + "".join(f"H{at:.2f}V{HIGH - rise * n:.2f}" for n, at in enumerate(x, 1)) + f"H{WIDE:g}"
    shapes = [
        tag("path", d=f"{path}V{HIGH:g}Z", class_="area"),
        *dict.fromkeys(_mark(WIDE * mark.at_s / span, mark) for mark in marks),
        tag("path", d=path, class_="line"),
    ]
    drawn = tag(
        "svg", shapes, viewBox=f"0 0 {WIDE:g} {HIGH:g}", preserveAspectRatio="none", role="img", aria_label=title
    )
    return tag(
        "figure",
        tag("figcaption", title),
        tag(
            "div",
            tag("span", f"{len(x):,}{unit and ' ' + unit}", class_="top"),
            drawn,
            tag("span", "0 s", class_="from"),
            tag("span", seconds(span), class_="till"),
            class_="growth",
        ),
        _legend(marks),
        class_="plot",
    )


def _mark(x: float, mark: Mark) -> Markup:
    """A mark at a whole unit of x, so that marks at nearly the same time become equal."""
    at = f"{x:.0f}"
    return tag("line", x1=at, x2=at, y1=HIGH - TICK if mark.small else 0, y2=f"{HIGH:g}", class_=f"mark {mark.tone}")


def _legend(marks: Sequence[Mark]) -> Markup:
    """One entry for each kind of mark."""
    kinds = dict.fromkeys((mark.name, mark.tone) for mark in marks)
    items = [tag("li", tag("i", class_=tone), name) for name, tone in kinds]
    return tag("ul", items, class_="legend") if items else Markup("")
