"""Reports of finished runs: tables, plots, an HTML page, JUnit and Markdown. They read the run folder only."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wedgehog.reports.campaign_folder import StoredCampaign
    from wedgehog.reports.rows import RunRow

GARBAGE_AT = 50_000
"""The garbage is collected after so many new objects; Python's own 700 cost a large campaign a fifth of its time."""


def write_folder(folder: Path, *, parquet: bool = False) -> "StoredCampaign":
    """Read a campaign's folder once, write its reports, and return it. ValueError: no such folder, or no pyarrow."""
    with _collected_seldom():
        return _write_folder(folder, parquet=parquet)


def _write_folder(folder: Path, *, parquet: bool) -> "StoredCampaign":
    from wedgehog.reports.campaign_folder import load
    from wedgehog.reports.rows import table

    if not parquet:
        write_campaign(campaign := load(folder))
        return campaign
    from wedgehog.reports.data.parquet import parquet_tables, write_tables

    tables = parquet_tables()
    campaign = load(folder, tables.add)
    rows = table(campaign)
    write_campaign(campaign, rows)
    write_tables(tables, campaign, rows)
    return campaign


@contextmanager
def _collected_seldom() -> Iterator[None]:
    """Collect garbage seldom: each collection looks at all rows of all runs, and they are no garbage."""
    young, *older = gc.get_threshold()
    gc.set_threshold(max(young, GARBAGE_AT) if young else 0, *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)


def write_campaign(campaign: "StoredCampaign", rows: "Sequence[RunRow] | None" = None) -> list[Path]:
    """Write all four reports of a campaign that was read; return their paths. `rows` are those of its `table`."""
    from wedgehog.reports import junit, markdown
    from wedgehog.reports.page import html
    from wedgehog.reports.rows import table, write_csv

    folder = campaign.folder
    rows = table(campaign) if rows is None else rows
    paths = [folder / name for name in ("summary.csv", "junit.xml", "report.html", "summary.md")]
    write_csv(rows, paths[0])
    junit.write(campaign, paths[1])
    html.write(campaign, rows, paths[2])
    markdown.write(campaign, rows, paths[3])
    return paths
