"""The part of the page that says how long things took: drawn for all, then in numbers per scenario and agent."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from wedgehog.reports.distributions import DRAWS, MISSING, distributions
from wedgehog.reports.latency import KEYS, QUANTILES, latency
from wedgehog.reports.markup import Markup, html_table, line, tag
from wedgehog.reports.words import count, many, seconds

ROWS_SHOWN = 400
"""Of a family with more rows, the slowest are shown; latency.parquet holds all."""
ALL_ROWS_SHOWN = 2_000
"""So many rows all families have together at most, so that the page stays small with many families, too."""

_HEADS = (*((name, "keep") for name in KEYS[1:]), *((name, "n") for name in QUANTILES))
NOTE = (
    "Over all repeats. Each dot is one time, the stroke is p50, the line reaches to p95. First byte: from the request "
    "to the first byte that the provider sent, if one arrived. Call: until its end that the agent could see. Turn: "
    "from its first request. The recovery message counts only as recovery."
)


def latency_section(taken: pd.DataFrame) -> Markup | None:
    """Figures, and a folded table for each family."""
    if not len(taken):
        return None
    drawn = tag("div", distributions(taken), class_="plots") if DRAWS else tag("p", MISSING, class_="soft")
    title = tag("h2", "How long it took")
    return tag("section", title, drawn, tag("p", NOTE, class_="soft"), _tables(latency(taken)))


def _tables(found: pd.DataFrame) -> Iterator[Markup]:
    families = found.groupby("family", sort=False)
    most = min(ROWS_SHOWN, max(1, ALL_ROWS_SHOWN // len(families)))
    for family, rows in families:
        shown = (
            rows.nlargest(most, "max") if len(rows) > most else rows.sort_values(["scenario", "agent"], kind="stable")
        )
        table = html_table(_HEADS, [line(_HEADS, _cells(row)) for row in shown.to_dict("records")], tall=True)
        left = f", the {most} slowest" if len(rows) > most else ""
        yield tag("details", tag("summary", f"{family}: {many(len(rows), 'row')}{left}"), table, class_="more")


def _cells(row: Mapping[Any, Any]) -> list[str]:
    times = (seconds(row[name]) for name in QUANTILES[1:])
    return [*(str(row[name]) for name in KEYS[1:]), count(row["count"]), *times]
