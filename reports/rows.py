"""One row per run: the rows of summary.csv, and the table from which all other tables are computed."""

import csv
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.history_numbers import RunNumbers
from wedgehog.reports.result_category import ResultCategory, reads, result_category


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run: first the columns of summary.csv, in order; from `family` on those of the other reports and of `--json`.

    Times are in seconds and money in dollars. None: it was not measured, or the price is unknown.
    """

    scenario: str
    agent: str
    world: str
    network: str
    time_scale: float | None = None
    verdict: str
    expected: str
    violated: str
    level: str
    strict: str
    paid_calls: int | None = None
    refused_calls: int | None = None
    tokens_billed: int | None = None
    tokens_delivered: int | None = None
    cost_usd: float | None = None
    usage: str | None = None
    at_least: bool | None = None
    calls_s: float | None = None
    peak_calls_per_min: float | None = None
    peak_usd_per_min: float | None = None
    start_s: float | None = None
    turn_s: float | None = None
    first_error_s: float | None = None
    recovery_s: float | None = None
    answered: bool | None = None
    virtual_s: float | None
    real_s: float | None
    faults_fired: int | None = None
    run_dir: str
    replay: str

    family: str
    repeat: int
    standing: ResultCategory
    reads: str
    report_number: str
    queries: int | None = None
    queries_s: float | None = None
    queries_share: float | None = None
    says: str
    skipped: str
    tags: str
    harmed_answered: bool | None = None
    answered_turns: int | None = None
    wasted_usd: float | None = None
    prices: str = ""


_NAMES = tuple(field.name for field in fields(RunRow))
COLUMNS = _NAMES[: _NAMES.index("family")]
"""The columns of summary.csv, in order."""


def table(campaign: StoredCampaign) -> list[RunRow]:
    """One row per finished run."""
    return [row(run, campaign, campaign.numbers[run.folder]) for run in campaign.runs]


def played(rows: Iterable[RunRow]) -> list[RunRow]:
    """The rows of runs that were not skipped."""
    return [row for row in rows if row.verdict != "skipped"]


def row(run: StoredRun, campaign: StoredCampaign, numbers: RunNumbers) -> RunRow:
    """The row of one run."""
    judged = run.judgement
    said: dict[str, Any] = {
        "scenario": judged.scenario,
        "agent": judged.agent,
        "world": judged.world,
        "network": judged.network,
        "verdict": "skipped" if judged.skipped else judged.verdict,
        "expected": judged.expected,
        "violated": ";".join(judged.violated),
        "level": judged.level,
        "strict": ";".join(judged.strict),
        **numbers.columns,
        "virtual_s": judged.virtual_s,
        "real_s": judged.real_s,
        "run_dir": campaign.place(run.folder),
        "replay": judged.replay,
        "family": campaign.family(judged.scenario),
        "repeat": judged.repeat,
        "standing": result_category(judged),
        "reads": reads(judged),
        "report_number": judged.report_number,
        "says": judged.says,
        "skipped": judged.skipped,
        "tags": ";".join(campaign.tags(judged.scenario)),
    }
    return RunRow(**{name: _encodable(value) for name, value in said.items()})


def _encodable(value: Any) -> Any:
    """A text with half characters as escapes, because no file can hold them; any other value as it is."""
    if not isinstance(value, str) or value.isascii():
        return value
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def write_csv(rows: Iterable[RunRow], path: Path) -> None:
    """Write summary.csv. A cost without a known price reads `unknown`; what was not measured stays empty."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([_cell(row, name) for name in COLUMNS] for row in rows)


def _cell(row: RunRow, name: str) -> object:
    unpriced = name in ("cost_usd", "peak_usd_per_min") and row.cost_usd is None and row.verdict != "skipped"
    return "unknown" if unpriced else getattr(row, name)


def as_json(rows: Iterable[RunRow]) -> str:
    """The rows as a JSON list of objects."""
    return json.dumps([asdict(row) for row in rows], indent=1, ensure_ascii=False)
