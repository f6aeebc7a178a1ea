"""One row per run: the rows of summary.csv, and the table from which all other tables are computed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from wedgehog.harness.record.event import FaultFired
from wedgehog.harness.record.history import History, Turn
from wedgehog.harness.record.ledger import Ledger, books, ledger_of
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.turn_outcome import TurnOutcome, outcome_of
from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.cost import database
from wedgehog.reports.result_category import reads, result_category

COLUMNS = (
    *("scenario", "agent", "world", "network", "time_scale", "verdict", "expected", "violated"),
    *("level", "strict"),
    *("paid_calls", "refused_calls", "tokens_billed", "tokens_delivered", "cost_usd", "usage", "at_least"),
    *("calls_s", "peak_calls_per_min", "peak_usd_per_min", "turn_s", "first_error_s", "recovery_s", "answered"),
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
    judged, used = run.judgement, database(run.history)
    beside = (
        campaign.family(judged.scenario),
        judged.repeat,
        result_category(judged),
        reads(judged),
        judged.report_number,
        used.queries if used else None,
        used.took_s if used else None,
        used.share if used else None,
        judged.says,
        judged.skipped,
        ";".join(campaign.tags(judged.scenario)),
        harmed_answered(run.history),
        answered_turns(run.history),
        wasted_usd(run.history),
    )
    whole = row(run, campaign.place(run.folder)) | dict(zip(BESIDE, beside, strict=True))
    return {name: _encodable(value) if isinstance(value, str) else value for name, value in whole.items()}


def _encodable(text: str) -> str:
    """`text` with half characters as escapes: a table whose strings pyarrow holds cannot have them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def row(run: StoredRun, run_dir: str) -> dict[str, Any]:
    """The summary of one run, by column."""
    judged = run.judgement
    return {
        "scenario": judged.scenario,
        "agent": judged.agent,
        "world": judged.world,
        "network": judged.network,
        "time_scale": None if judged.skipped else run.history.run.time_scale,
        "verdict": "skipped" if judged.skipped else judged.verdict,
        "expected": judged.expected,
        "violated": ";".join(judged.violated),
        "level": judged.level,
        "strict": ";".join(judged.strict),
        **(_NOT_PLAYED if judged.skipped else _spent(run.history) | _waited(run.history)),
        "virtual_s": judged.virtual_s,
        "real_s": judged.real_s,
        "run_dir": run_dir,
        "replay": judged.replay,
    }


_MEASURED = COLUMNS[COLUMNS.index("paid_calls") : COLUMNS.index("run_dir")]
_NOT_PLAYED: dict[str, Any] = dict.fromkeys(_MEASURED)
_SHOWN = ("surfaced", "stopped at its limit")
"""Ends of a turn in which its user saw an error."""


def _spent(history: History) -> dict[str, Any]:
    spent = books(history)
    return {
        "paid_calls": spent.paid_calls,
        "refused_calls": spent.total.refused,
        "tokens_billed": spent.total.tokens_billed,
        "tokens_delivered": spent.total.tokens_delivered,
        "cost_usd": spent.cost_usd,
        "usage": _usage(spent),
        "at_least": history.cut_short,
        "calls_s": _rounded(spent.calls_s),
        "peak_calls_per_min": _rounded(spent.peak_calls_per_min),
        "peak_usd_per_min": _rounded(spent.peak_usd_per_min),
    }


def _usage(spent: Ledger) -> str:
    """Where the token numbers of the paid calls come from: the script, our count, or both."""
    if not spent.paid_calls or not spent.scripted:
        return "counted" if spent.paid_calls else ""
    return "scripted" if spent.scripted == spent.paid_calls else "both"


def _waited(history: History) -> dict[str, Any]:
    played = [(turn, outcome_of(turn, history)) for turn in history.turns if not turn.recovery]
    return {
        "turn_s": _rounded(worst_turn_s(history)),
        "first_error_s": _rounded(next((turn.duration_s for turn, came in played if came.kind in _SHOWN), None)),
        "recovery_s": _rounded(recovery_s(history)),
        "answered": _answered(played),
        "faults_fired": sum(1 for _ in history.of(FaultFired)),
    }


def worst_turn_s(history: History, without_s: Callable[[Turn, float], float] = lambda *_: 0.0) -> float | None:
    """The longest turn of the scenario; `without_s` is the part of a turn, which ends at that time, to leave out."""
    ended = [(turn, turn.end.at_s) for turn in history.turns if not turn.recovery and turn.end is not None]
    times = (max(0.0, (turn.duration_s or 0.0) - without_s(turn, end_s)) for turn, end_s in ended)
    return max(times, default=None)


def _rounded(number: float | None) -> float | None:
    """Rounded to the four decimals that are measured."""
    return None if number is None else round(number, 4)


def recovery_s(history: History) -> float | None:
    """The duration of the recovery turn that was answered; None if none was."""
    tries = (turn for turn in history.turns if turn.recovery)
    return next((turn.duration_s for turn in tries if outcome_of(turn, history).kind == "answered"), None)


def _answered(played: list[tuple[Turn, TurnOutcome]]) -> bool | None:
    """Whether each message that needs an answer was answered; None if no message needs one."""
    owing = [came for turn, came in played if _needs_answer(turn, came)]
    return all(came.kind == "answered" for came in owing) if owing else None


def answered_turns(history: History) -> int:
    """How many turns of the scenario were answered."""
    return sum(outcome_of(turn, history).kind == "answered" for turn in history.turns if not turn.recovery)


def wasted_usd(history: History) -> float | None:
    """Dollars for calls that completed no text block and no tool call; None if a price is unknown."""
    wasted = [call for call in history.played_calls if call.paid and not call.progressed]
    return ledger_of(history, wasted).cost_usd


def harmed_answered(history: History) -> bool | None:
    """Whether each turn in which a fault fired was answered; None without such a turn, or if answers have no nonce."""
    if not history.run.carries_nonces:
        return None
    faulty = {fired.turn for fired in history.of(FaultFired)}
    return _answered([(turn, outcome_of(turn, history)) for turn in history.turns if turn.number in faulty - {0}])


def _needs_answer(turn: Turn, came: TurnOutcome) -> bool:
    wake_up = turn.stimulus is not None and turn.stimulus.stimulus == "wake_up"
    return came.kind == "answered" or not (wake_up or came.kind in ("stopped by its user", "killed"))
