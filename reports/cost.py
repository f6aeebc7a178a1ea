"""What each agent's runs cost, and how long its user waited.

Times are as measured. An incident's own number stands beside them, in the report's words: scaled durations are never
multiplied back, since an SDK's back-off does not scale.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from wedgehog.reports.words import missing, money

SPENT = (
    "paid_calls",
    "refused_calls",
    "tokens_billed",
    "tokens_delivered",
    "cost_usd",
    "calls_s",
    "peak_calls_per_min",
    "peak_usd_per_min",
)
TIMES = ("turn_s", "first_error_s", "recovery_s", "queries", "queries_s", "queries_share")
SCRIPTED = ("scripted", "both")
"""Values of the column `usage` by which a cost is the script's."""


def worst(table: pd.DataFrame) -> pd.DataFrame:
    """One row per scenario and agent that was played; of repeats, the largest number of each column.

    Money is NaN where one of the runs has no known price; a time counts where it was measured.
    """
    numbers = [*SPENT, *TIMES]
    played = table[table["verdict"] != "skipped"]
    kept = ["scenario", "agent", "usage", "at_least", "report_number"]
    if not len(played):
        return pd.DataFrame(columns=[*kept, *numbers])
    values = played[kept].join(played[numbers].astype(float))
    folds: dict[str, Any] = dict.fromkeys(SPENT, _largest) | dict.fromkeys(TIMES, "max")
    folds |= {"usage": _usage, "at_least": "any", "report_number": "first"}
    return values.groupby(["scenario", "agent"], sort=False).agg(folds).reset_index()


def _largest(column: "pd.Series[float]") -> float:
    return float(column.max(skipna=False))


def _usage(column: "pd.Series[str]") -> str:
    return next((said for said in column if said in SCRIPTED), "counted")


def total_usd(table: pd.DataFrame) -> float | None:
    """What all runs together would have cost; None if a price is unknown."""
    played = table[table["verdict"] != "skipped"]
    total = float(played["cost_usd"].astype(float).sum(skipna=False)) if len(played) else 0.0
    return None if total != total else total  # noqa: PLR0124  NaN is the one number unlike itself


def total_words(table: pd.DataFrame) -> str:
    """`$145.27`, or `at least $0.145` where the watch of a run ended while calls were still being made."""
    total = total_usd(table)
    least = "at least " if total is not None and table["at_least"].eq(True).any() else ""
    return f"{least}{money(total)}"


def cost_words(row: Mapping[Any, Any]) -> str:
    """A row's cost: `≥ $0.145` for a lower bound, `$3.88*` by the tokens that the script sets."""
    least = "≥ " if row["at_least"] and not missing(row["cost_usd"]) else ""
    return f"{least}{money(row['cost_usd'])}{'*' if row['usage'] in SCRIPTED else ''}"


def notes(rows: Iterable[Mapping[Any, Any]]) -> Iterator[str]:
    """What the signs beside these rows' costs mean."""
    shown = [row for row in rows if not missing(row["paid_calls"])]
    if any(row["usage"] in SCRIPTED for row in shown):
        yield "* by the tokens that the script sets, not by what was sent"
    if any(row["at_least"] for row in shown):
        yield "≥ calls were still being made when the watch ended: calls, tokens and cost are lower bounds"
