"""The tables of a campaign as Parquet, for notebooks and databases: runs, calls and latency."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.call_attributes import OF_HISTORY, OF_RUN, ColumnType, run_values
from wedgehog.reports.campaign_folder import StoredCampaign, load
from wedgehog.reports.facts import RunFacts
from wedgehog.reports.latency import KEYS, QUANTILES, latency, samples
from wedgehog.reports.rows import COLUMNS, WHOLE, table

_TRUTHS = ("at_least", "answered")
_NUMBERS = (
    *("time_scale", "cost_usd", "calls_s", "peak_calls_per_min", "peak_usd_per_min", "start_s", "turn_s"),
    *("first_error_s", "recovery_s", "virtual_s", "real_s"),
)
_KINDS: Mapping[ColumnType, tuple[str, ...]] = {"int64": WHOLE, "bool": _TRUTHS, "double": _NUMBERS}
TYPES: Mapping[str, ColumnType] = {
    name: next((kind for kind, names in _KINDS.items() if name in names), "string") for name in COLUMNS
}
"""The columns of runs.parquet."""
LATENCY_TYPES: Mapping[str, ColumnType] = {
    name: "string" if name in KEYS else "int64" if name == "count" else "double" for name in (*KEYS, *QUANTILES)
}

INSTALLED = find_spec("pyarrow") is not None


def write_parquet(folder: Path) -> list[Path]:
    """Write runs.parquet, calls.parquet and latency.parquet into a campaign's folder. ValueError without pyarrow."""
    tables = ParquetTables()
    return tables.write(load(folder, tables.add))


class ParquetTables:
    """Takes the calls of each run while the campaign is read, and writes the tables."""

    def __init__(self) -> None:
        """No calls. ValueError without pyarrow."""
        if not INSTALLED:
            raise ValueError("--parquet needs pyarrow: pip install 'wedgehog[parquet]'")
        self._calls: dict[Path, tuple[tuple[Any, ...], ...]] = {}

    def add(self, run: StoredRun, facts: RunFacts) -> None:
        """Take the calls of a run."""
        if facts.calls:
            self._calls[run.folder] = facts.calls

    def write(self, campaign: StoredCampaign) -> list[Path]:
        """Write the tables of a campaign whose runs were all added; return their paths."""
        rows = table(campaign)
        return [
            _write(campaign.folder / "runs.parquet", rows[list(TYPES)], TYPES),
            _write(campaign.folder / "calls.parquet", self._all_calls(campaign), {**OF_RUN, **OF_HISTORY}),
            _write(campaign.folder / "latency.parquet", latency(samples(campaign)), LATENCY_TYPES),
        ]

    def _all_calls(self, campaign: StoredCampaign) -> pd.DataFrame:
        lines = [run_values(run.judgement) + call for run in campaign.runs for call in self._calls.get(run.folder, ())]
        return pd.DataFrame(lines, columns=[*OF_RUN, *OF_HISTORY])


def _write(path: Path, rows: pd.DataFrame, types: Mapping[str, ColumnType]) -> Path:
    """Write one table; a column has its type also where all of it is empty."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrow = {
        name: pa.list_(pa.string()) if kind == "list<string>" else pa.type_for_alias(kind)
        for name, kind in types.items()
    }
    schema = pa.schema(list(arrow.items()))
    pq.write_table(pa.Table.from_pandas(rows, schema, preserve_index=False), path)
    return path
