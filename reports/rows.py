"""One row per run: the rows of summary.csv, and the table from which all other tables are computed."""

from pathlib import Path
from typing import Any

import pandas as pd

from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.history_numbers import RunNumbers
from wedgehog.reports.result_category import reads, result_category

COLUMNS = (
    *("scenario", "agent", "world", "network", "time_scale", "verdict", "expected", "violated"),
    *("level", "strict"),
    *("paid_calls", "refused_calls", "tokens_billed", "tokens_delivered", "cost_usd", "usage", "at_least"),
    *("calls_s", "peak_calls_per_min", "peak_usd_per_min", "start_s", "turn_s"),
    *("first_error_s", "recovery_s", "answered"),
    *("virtual_s", "real_s", "faults_fired", "run_dir", "replay"),
)
"""The columns of summary.csv, in order."""

WHOLE = ("paid_calls", "refused_calls", "tokens_billed", "tokens_delivered", "faults_fired")
"""Columns that count: whole numbers, or empty."""

BESIDE = (
    *("family", "repeat", "standing", "reads", "report_number", "queries", "queries_s", "queries_share", "says"),
    *("skipped", "tags", "harmed_answered", "answered_turns", "wasted_usd"),
)
"""More columns of `table`, for the other reports and for `--json`."""


def table(campaign: StoredCampaign) -> pd.DataFrame:
    """One row per finished run, with `COLUMNS` and `BESIDE`; times in seconds, money in dollars (NaN: unknown)."""
    return pd.DataFrame([_whole_row(run, campaign) for run in campaign.runs], columns=[*COLUMNS, *BESIDE])


def write_csv(rows: pd.DataFrame, path: Path) -> None:
    """Write summary.csv. A cost without a known price reads `unknown`; what was not measured stays empty."""
    shown = rows[list(COLUMNS)].astype(dict.fromkeys(WHOLE, "Int64"))
    unpriced = (rows["verdict"] != "skipped") & rows["cost_usd"].isna()
    for column in ("cost_usd", "peak_usd_per_min"):
        shown[column] = shown[column].astype(object).mask(unpriced, "unknown")
    shown.to_csv(path, index=False, lineterminator="\n")


def _whole_row(run: StoredRun, campaign: StoredCampaign) -> dict[str, Any]:
    judged, numbers = run.judgement, campaign.numbers[run.folder]
    beside = {
        "family": campaign.family(judged.scenario),
        "repeat": judged.repeat,
        "standing": result_category(judged),
        "reads": reads(judged),
        "report_number": judged.report_number,
        "says": judged.says,
        "skipped": judged.skipped,
        "tags": ";".join(campaign.tags(judged.scenario)),
    }
    whole = dict.fromkeys(BESIDE) | row(run, campaign.place(run.folder), numbers) | beside
    return {name: _encodable(value) if isinstance(value, str) else value for name, value in whole.items()}


def _encodable(text: str) -> str:
    """`text` with half characters as escapes: a table whose strings pyarrow holds cannot have them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def row(run: StoredRun, run_dir: str, numbers: RunNumbers) -> dict[str, Any]:
    """The summary of one run, by column."""
    judged = run.judgement
    return {
        "scenario": judged.scenario,
        "agent": judged.agent,
        "world": judged.world,
        "network": judged.network,
        "time_scale": None,
        "verdict": "skipped" if judged.skipped else judged.verdict,
        "expected": judged.expected,
        "violated": ";".join(judged.violated),
        "level": judged.level,
        "strict": ";".join(judged.strict),
        **_NOT_PLAYED,
        **numbers.columns,
        "virtual_s": judged.virtual_s,
        "real_s": judged.real_s,
        "run_dir": run_dir,
        "replay": judged.replay,
    }


_MEASURED = COLUMNS[COLUMNS.index("paid_calls") : COLUMNS.index("run_dir")]
_NOT_PLAYED: dict[str, Any] = dict.fromkeys(_MEASURED)
