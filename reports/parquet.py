"""The tables of a campaign as Parquet, for notebooks and databases: runs, calls and latency."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.call_attributes import call_rows
from wedgehog.reports.campaign_folder import StoredCampaign, load
from wedgehog.reports.latency import latency, samples
from wedgehog.reports.rows import COLUMNS, table

INSTALLED = find_spec("pyarrow") is not None


def write_parquet(folder: Path) -> list[Path]:
    """Write runs.parquet, calls.parquet and latency.parquet into a campaign's folder. ValueError without pyarrow."""
    tables = ParquetTables()
    return tables.write(load(folder, tables.add))


class ParquetTables:
    """Takes the calls of each run while its history is read, and writes the tables; it keeps no history."""

    def __init__(self) -> None:
        """No calls. ValueError without pyarrow."""
        if not INSTALLED:
            raise ValueError("--parquet needs pyarrow: pip install 'wedgehog[parquet]'")
        self._calls: dict[Path, list[tuple[Any, ...]]] = {}
        self._names: tuple[str, ...] = ()

    def add(self, run: StoredRun) -> None:
        """Take the calls of a run."""
        rows = call_rows(run)
        if rows:
            self._names = tuple(rows[0])
            self._calls[run.folder] = [tuple(row.values()) for row in rows]

    def write(self, campaign: StoredCampaign) -> list[Path]:
        """Write the tables of a campaign whose runs were all added; return their paths."""
        lines = [line for run in campaign.runs for line in self._calls.get(run.folder, ())]
        calls = pd.DataFrame(lines, columns=list(self._names))
        tables = {"runs": table(campaign)[list(COLUMNS)], "calls": calls, "latency": latency(samples(campaign))}
        paths = [campaign.folder / f"{name}.parquet" for name in tables]
        for path, rows in zip(paths, tables.values(), strict=True):
            rows.to_parquet(path, index=False)
        return paths
