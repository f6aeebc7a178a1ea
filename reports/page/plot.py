"""Bars as inline SVG. Shapes stretch with the page; text is HTML and keeps its size."""

from collections.abc import Sequence
from dataclasses import dataclass

from wedgehog.reports.markup import Markup, tag


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its group, name, value and the words beside it."""

    group: str
    name: str
    value: float
    says: str


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
