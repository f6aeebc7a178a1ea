"""Reports of finished runs: tables, plots, an HTML page, JUnit and Markdown. They read the run folder only."""

from pathlib import Path

__all__ = ["write_all"]


def write_all(folder: Path) -> list[Path]:
    """Write all four reports into a campaign's folder and return their paths. ValueError: there is no such folder."""
    from wedgehog.reports import html, junit, markdown
    from wedgehog.reports.campaign_folder import load
    from wedgehog.reports.rows import table, write_csv

    campaign = load(folder)
    rows = table(campaign)
    paths = [folder / name for name in ("summary.csv", "junit.xml", "report.html", "summary.md")]
    write_csv(rows, paths[0])
    junit.write(campaign, paths[1])
    html.write(campaign, rows, paths[2])
    markdown.write(campaign, rows, paths[3])
    return paths
