"""What each agent's runs were billed for, beside what arrived."""

import pandas as pd

NUMBERS = (
    "paid_calls",
    "refused_calls",
    "tokens_billed",
    "tokens_delivered",
    "cost_usd",
    "peak_calls_per_min",
    "peak_usd_per_min",
)


def cost(table: pd.DataFrame) -> pd.DataFrame:
    """One row per scenario and agent that was played; of repeats, the dearest number of each column.

    Money is NaN where one of the runs has no known price.
    """
    return worst(table, NUMBERS)


def worst(table: pd.DataFrame, numbers: tuple[str, ...]) -> pd.DataFrame:
    """The largest of each number by scenario and agent, unknown if one of them is."""
    played = table[table["verdict"] != "skipped"]
    if not len(played):
        return pd.DataFrame(columns=["scenario", "agent", *numbers])
    values = played[["scenario", "agent"]].join(played[list(numbers)].astype(float))
    grouped = values.groupby(["scenario", "agent"], sort=False)
    return grouped[list(numbers)].agg(_largest).reset_index()


def _largest(column: "pd.Series[float]") -> float:
    return float(column.max(skipna=False))


def total_usd(table: pd.DataFrame) -> float | None:
    """What all runs together would have cost; None if a price is unknown."""
    played = table[table["verdict"] != "skipped"]
    total = float(played["cost_usd"].astype(float).sum(skipna=False)) if len(played) else 0.0
    return None if total != total else total  # noqa: PLR0124  NaN is the one number unlike itself
