"""The tables of a campaign as Parquet, for notebooks and databases: runs, calls and latency."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.data.data_tables import DataTable, DataTables
from wedgehog.reports.rows import RunRow

INSTALLED = find_spec("pyarrow") is not None


def parquet_tables() -> DataTables:
    """Tables without a run. ValueError without pyarrow, before a campaign is read."""
    if not INSTALLED:
        raise ValueError("--parquet needs pyarrow: pip install 'wedgehog[parquet]'")
    return DataTables()


def write_tables(tables: DataTables, campaign: StoredCampaign, rows: Iterable[RunRow]) -> None:
    """Write the tables of a campaign whose runs were all added."""
    for table in tables.of(campaign, rows):
        _write(campaign.folder / f"{table.name}.parquet", table)


def _write(path: Path, table: DataTable) -> None:
    """Write one table; a column has its type also where all of it is empty."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = [pa.list_(pa.string()) if it == "list<string>" else pa.type_for_alias(it) for it in table.types.values()]
    columns = zip(*table.rows, strict=True) if table.rows else ((),) * len(kinds)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, list(table.types)), path)
