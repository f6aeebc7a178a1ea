"""The tables of a campaign as DataFrames of pandas."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from wedgehog.reports.call_attributes import ColumnType
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.data_tables import DataTable, DataTables
from wedgehog.reports.rows import table as table_of

if TYPE_CHECKING:
    import pandas as pd

INSTALLED = find_spec("pandas") is not None

_DTYPES: Mapping[ColumnType, str] = {"int64": "Int64", "double": "float64", "bool": "boolean", "string": "string"}


def frames(folder: Path | str) -> "dict[str, pd.DataFrame]":
    """The tables `runs`, `calls` and `latency` of a campaign's folder. ValueError: no such folder, or no pandas."""
    if not INSTALLED:
        raise ValueError("frames() needs pandas: pip install 'wedgehog[pandas]'")
    tables = DataTables()
    campaign = load(Path(folder), tables.add)
    return {table.name: _frame(table) for table in tables.of(campaign, table_of(campaign))}


def _frame(table: DataTable) -> "pd.DataFrame":
    """A table; what was not measured is NA, and whole numbers stay whole."""
    import pandas as pd

    rows = pd.DataFrame(table.rows, columns=list(table.types), dtype=object)
    return rows.astype({name: _DTYPES[kind] for name, kind in table.types.items() if kind in _DTYPES})
