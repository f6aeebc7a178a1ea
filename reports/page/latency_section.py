"""The part of the page that says how long things took: drawn for all, then in numbers per scenario and agent."""

from collections.abc import Iterator, Sequence
from heapq import nlargest

from wedgehog.reports.groups import grouped
from wedgehog.reports.latency import LATENCY_COLUMNS, LatencyRow, TimesByKey, TimesKey, latency
from wedgehog.reports.markup import Markup, html_table, line, tag
from wedgehog.reports.page.distributions import DRAWS, MISSING, distributions, drawable
from wedgehog.reports.words import count, many, seconds

ROWS_SHOWN = 400
"""Of a family with more rows, the slowest are shown; latency.parquet holds all."""
ALL_ROWS_SHOWN = 2_000
"""The most rows of all families together: the page stays small with many families too."""

_HEADS = tuple((name, "keep" if name in TimesKey._fields else "n") for name in LATENCY_COLUMNS[1:])
NOTE = (
    "Over all repeats. First byte: from the request to the first byte that the provider sent, if one arrived. Call: "
    "until its end that the agent could see. Turn: from its first request; without one, from the time at which it "
    "usually comes. First error: the time of the first turn whose user saw an error. Recovery: the time of the message "
    "after the scenario's last one, which counts nowhere else."
)
DRAWN_NOTE = "Each dot is one time, the stroke is p50, the line reaches to p95."


def latency_section(taken: TimesByKey) -> Markup | None:
    """Figures, and a folded table for each family."""
    if not taken:
        return None
    drawn = list(_drawn(taken)) if drawable(taken) else []
    title = tag("h2", "How long it took")
    return tag("section", title, drawn, tag("p", NOTE, class_="soft"), _tables(latency(taken)))


def _drawn(taken: TimesByKey) -> Iterator[Markup]:
    if DRAWS:
        yield tag("div", distributions(taken), class_="plots")
    yield tag("p", DRAWN_NOTE if DRAWS else MISSING, class_="soft")


def _tables(found: Sequence[LatencyRow]) -> Iterator[Markup]:
    families = grouped(found, lambda row: row.family)
    most = min(ROWS_SHOWN, max(1, ALL_ROWS_SHOWN // len(families)))
    for family, rows in families.items():
        table = html_table(_HEADS, [line(_HEADS, _cells(row)) for row in _shown(rows, most)], tall=True)
        left = f", the {most} slowest" if len(rows) > most else ""
        yield tag("details", tag("summary", f"{family}: {many(len(rows), 'row')}{left}"), table, class_="more")


def _shown(rows: Sequence[LatencyRow], most: int) -> list[LatencyRow]:
    """All by scenario and agent, or the slowest of too many."""
    if len(rows) > most:
        return nlargest(most, rows, key=lambda row: row.max)
    return sorted(rows, key=lambda row: (row.scenario, row.agent))


def _cells(row: LatencyRow) -> list[str]:
    times = map(seconds, (row.p50, row.p95, row.p99, row.max))
    return [row.scenario, row.agent, row.measure, count(row.count), *times]
