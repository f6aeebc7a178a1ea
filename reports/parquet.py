"""The tables of a campaign as Parquet, for notebooks and databases: runs, calls and latency."""

from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from wedgehog.reports.call_attributes import call_rows
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.latency import latency, samples
from wedgehog.reports.rows import COLUMNS, table

INSTALLED = find_spec("pyarrow") is not None


def write_parquet(folder: Path) -> list[Path]:
    """Write runs.parquet, calls.parquet and latency.parquet into a campaign's folder. ValueError without pyarrow."""
    if not INSTALLED:
        raise ValueError("--parquet needs pyarrow: pip install 'wedgehog[parquet]'")
    campaign = load(folder)
    calls = pd.DataFrame([row for run in campaign.runs for row in call_rows(run.again())])
    tables = {"runs": table(campaign)[list(COLUMNS)], "calls": calls, "latency": latency(samples(campaign))}
    for name, rows in tables.items():
        rows.to_parquet(folder / f"{name}.parquet", index=False)
    return [folder / f"{name}.parquet" for name in tables]
