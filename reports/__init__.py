"""Reports of finished runs: tables, plots, an HTML page, JUnit and Markdown. They read the run folder only."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wedgehog.reports.campaign_folder import StoredCampaign


def write_folder(folder: Path, *, parquet: bool = False) -> "StoredCampaign":
    """Read a campaign's folder once, write its reports, and return it. ValueError: no such folder, or no pyarrow."""
    from wedgehog.reports.campaign_folder import load

    if not parquet:
        write_campaign(campaign := load(folder))
        return campaign
    from wedgehog.reports.parquet import parquet_tables, write_tables

    tables = parquet_tables()
    campaign = load(folder, tables.add)
    write_campaign(campaign)
    write_tables(tables, campaign)
    return campaign


def write_campaign(campaign: "StoredCampaign") -> list[Path]:
    """Write all four reports of a campaign that was read; return their paths."""
    from wedgehog.reports import html, junit, markdown
    from wedgehog.reports.rows import table, write_csv

    folder = campaign.folder
    rows = table(campaign)
    paths = [folder / name for name in ("summary.csv", "junit.xml", "report.html", "summary.md")]
    write_csv(rows, paths[0])
    junit.write(campaign, paths[1])
    html.write(campaign, rows, paths[2])
    markdown.write(campaign, rows, paths[3])
    return paths
