"""Distributions of times as SVG, drawn by matplotlib; the colours are those of the page, light and dark."""

import importlib.util
import io
import math
import re
from collections.abc import Sequence
from typing import Any

from wedgehog.reports.latency import MEASURES, TimesByKey, quantile
from wedgehog.reports.markup import Markup, tag
from wedgehog.reports.words import clean, one_line

DRAWS = importlib.util.find_spec("matplotlib") is not None
MISSING = "The distributions are drawn where matplotlib is installed: pip install 'wedgehog[plots]'"

FEWEST = 5
"""Fewer times than these in each row are read faster in the table, and importing matplotlib takes a second of CPU."""
ROWS_SHOWN = 40
DOTS = 150
"""At most so many samples of a row are drawn, evenly chosen in order of size; quantiles are those of all."""

_COLOURS = {"#010101": "var(--ink)", "#020202": "var(--soft)", "#030303": "var(--line)", "#040404": "var(--accent)"}
_INK, _SOFT, _LINE, _ACCENT = _COLOURS
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "wedgehog",
    "text.parse_math": False,
    "font.size": 9,
    "axes.edgecolor": _LINE,
    "xtick.color": _SOFT,
    "ytick.color": _INK,
}


def distributions(taken: TimesByKey) -> list[Markup]:
    """A figure for each measure with enough times: a row for each family and agent, on a logarithmic scale."""
    figures = []
    for number, measure in enumerate(MEASURES):
        rows = _rows(taken, measure)
        if _enough(rows):
            caption = tag("figcaption", f"{measure.capitalize()}")
            figures.append(tag("figure", caption, _drawn(rows, f"d{number}", measure), class_="distribution"))
    return figures


def drawable(taken: TimesByKey) -> bool:
    """Whether any measure has enough times for a figure."""
    return any(_enough(_rows(taken, measure)) for measure in MEASURES)


def _enough(rows: Sequence[tuple[str, list[float]]]) -> bool:
    return any(len(values) >= FEWEST for _, values in rows)


def _rows(taken: TimesByKey, measure: str) -> list[tuple[str, list[float]]]:
    """The name and the sorted times of each family and agent."""
    found: dict[tuple[str, str], list[float]] = {}
    for what, seconds in taken.items():
        if what.measure == measure and (some := [value for value in seconds if value > 0]):
            found.setdefault((what.family, what.agent), []).extend(some)
    return [(one_line(clean(f"{family} · {agent}"), 34), sorted(values)) for (family, agent), values in found.items()]


def _drawn(every: Sequence[tuple[str, list[float]]], prefix: str, measure: str) -> Markup:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    rows = every[:ROWS_SHOWN]
    with mpl.rc_context(_SETTINGS):
        figure = Figure(figsize=(6.2, 0.55 + 0.19 * len(rows)), layout="constrained", facecolor="none")
        axes = figure.subplots(subplot_kw={"facecolor": "none"})
        axes.set_xscale("log")
        axes.set_xlim(*_decades([value for _, values in every for value in (values[0], values[-1])]))
        dots = [(s, y) for y, (_, values) in enumerate(rows) for s in values[:: max(1, len(values) // DOTS)]]
        axes.plot(*zip(*dots, strict=True), "o", ms=3.2, color=_ACCENT, alpha=0.35, mew=0)
        halves, most = (list(part) for part in zip(*(_middle_and_most(values) for _, values in rows), strict=True))
        axes.hlines(range(len(rows)), halves, most, color=_INK, lw=1.4)
        axes.plot(halves, range(len(rows)), "|", color=_INK, ms=8, mew=1.6)
        axes.xaxis.set_major_formatter(lambda s, _: f"{s:g} s" if s >= 1 else f"{s * 1000:g} ms")
        axes.xaxis.set_minor_formatter(lambda s, _: "")
        axes.set_yticks(range(len(rows)), [name for name, _ in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.grid(axis="x", color=_LINE, lw=0.6)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="both", which="both", length=0)
        target = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)  # its methods have no types
        canvas.print_svg(target, metadata={"Date": None})  # Figure.savefig would draw everything twice
    return _inline(target.getvalue(), prefix, f"Distribution of {measure}, in seconds, per family and agent")


def _middle_and_most(values: list[float]) -> tuple[float, float]:
    """p50 and p95."""
    return quantile(values, 0.5), quantile(values, 0.95)


def _decades(times: Sequence[float]) -> tuple[float, float]:
    """Whole decades around all times, so that the scale has a number at both ends, also if all times are the same."""
    first = math.floor(math.log10(min(times)))
    return 10.0**first, 10.0 ** max(first + 1, math.ceil(math.log10(max(times))))


def _inline(svg: str, prefix: str, label: str) -> Markup:
    """A drawing as a part of the page: own ids, the page's colours, no style, no address of a namespace."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (?:xmlns(?::\w+)?|clip-path|version)="[^"]*"', "", svg)
    svg = re.sub(r'(<svg)[^>]*?(viewBox="[^"]*")[^>]*>', rf'\1 \2 role="img" aria-label="{label}">', svg, count=1)
    svg = re.sub(r'( id="| xlink:href="#)', rf"\g<1>{prefix}-", svg)
    svg = re.sub(r"font: ([\d.]+)px[^;\"]*", r"font-size: \1px", svg)
    for colour, name in _COLOURS.items():
        svg = svg.replace(colour, name)
    return Markup(re.sub(r"\n\s*", "\n", svg))
