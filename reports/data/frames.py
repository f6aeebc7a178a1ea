"""The tables of a campaign as DataFrames of pandas, and the fold of its repeats."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from wedgehog.reports.call_attributes import ColumnType
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.data.data_tables import DataTable, DataTables
from wedgehog.reports.rows import table as table_of

if TYPE_CHECKING:
    import pandas as pd

INSTALLED = find_spec("pandas") is not None

FOLDED = (
    "paid_calls",
    "tokens_billed",
    "tokens_delivered",
    "cost_usd",
    "calls_s",
    "turn_s",
    "first_error_s",
    "recovery_s",
)
"""The columns of `runs` whose quantiles over repeats are in `cells`."""
QUANTILES: Mapping[str, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}

_DTYPES: Mapping[ColumnType, str] = {"int64": "Int64", "double": "float64", "bool": "boolean", "string": "string"}


def frames(folder: Path | str) -> "dict[str, pd.DataFrame]":
    """The tables `runs`, `calls`, `latency` and `cells` of a campaign's folder.

    ValueError: no such folder, or no pandas.
    """
    if not INSTALLED:
        raise ValueError("frames() needs pandas: pip install 'wedgehog[pandas]'")
    tables = DataTables()
    campaign = load(Path(folder), tables.add)
    read = {table.name: _frame(table) for table in tables.of(campaign, table_of(campaign))}
    return {**read, "cells": _cells(read["runs"])}


def _frame(table: DataTable) -> "pd.DataFrame":
    """A table; what was not measured is NA, and whole numbers stay whole."""
    import pandas as pd

    rows = pd.DataFrame(table.rows, columns=list(table.types), dtype=object)
    return rows.astype({name: _DTYPES[kind] for name, kind in table.types.items() if kind in _DTYPES})


def _cells(runs: "pd.DataFrame") -> "pd.DataFrame":
    """The repeats of each scenario and agent as one row; skipped runs do not count, a quantile of nothing is NA."""
    import pandas as pd

    played = runs[runs["verdict"] != "skipped"]
    played = played.assign(passed=played["verdict"] == "pass", failed=played["verdict"] == "fail")
    repeats = played.groupby(["scenario", "agent"])
    folds: dict[str, pd.Series] = {
        "runs": repeats.size(),
        "passed": repeats["passed"].sum(),
        "failed": repeats["failed"].sum(),
    }
    for name in FOLDED:
        folds |= {f"{name}_{of}": repeats[name].quantile(part).astype("float64") for of, part in QUANTILES.items()}
    return pd.DataFrame(folds).astype(dict.fromkeys(("runs", "passed", "failed"), "int64")).reset_index()
