"""How long things took: one sample for each call, tool, turn, error and recovery, and their quantiles over repeats."""

from collections.abc import Iterator

import pandas as pd

from wedgehog.harness.record.history import History
from wedgehog.harness.record.store import StoredRun
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.reports.calls import took_s
from wedgehog.reports.campaign_folder import StoredCampaign
from wedgehog.reports.rows import recovery_s

MEASURES = ("first byte", "call", "tool", "turn", "first error", "recovery")
KEYS = ("family", "scenario", "agent", "measure")
QUANTILES = ("count", "p50", "p95", "p99", "max")
_SHOWN = ("surfaced", "stopped at its limit")


def samples(campaign: StoredCampaign) -> pd.DataFrame:
    """One row per measured time: family, scenario, agent, repeat, measure, seconds. Recovery turns count only there."""
    rows = [
        (campaign.family(run.judgement.scenario), *_place(run), measure, taken_s)
        for run in campaign.runs
        if not run.judgement.skipped
        for measure, taken_s in times(run.history)
    ]
    return pd.DataFrame(rows, columns=["family", "scenario", "agent", "repeat", "measure", "seconds"])


def _place(run: StoredRun) -> tuple[str, str, int]:
    return run.judgement.scenario, run.judgement.agent, run.judgement.repeat


def times(history: History) -> Iterator[tuple[str, float]]:
    """Each measured time of a run: its measure, and seconds of real (or virtual) time."""
    for call in history.played_calls:
        if call.ended is not None and call.ended.first_byte_s is not None:
            yield "first byte", call.ended.first_byte_s
        taken_s = took_s(call)
        if taken_s is not None:
            yield "call", taken_s
    for use in history.tool_uses:
        yield from (("tool", done.at_s - begun.at_s) for begun, done in zip(use.started, use.done, strict=False))
    for turn in history.turns:
        if turn.recovery or turn.duration_s is None:
            continue
        yield "turn", turn.duration_s
        if outcome_of(turn, history).kind in _SHOWN:
            yield "first error", turn.duration_s
    recovered_s = recovery_s(history)
    if recovered_s is not None:
        yield "recovery", recovered_s


def latency(taken: pd.DataFrame) -> pd.DataFrame:
    """Count, p50, p95, p99 and maximum of each measure, per scenario and agent; quantiles are interpolated."""
    if not len(taken):
        return pd.DataFrame(columns=[*KEYS, *QUANTILES])
    groups = taken.groupby(list(KEYS), sort=False)["seconds"]
    folds = {name: groups.quantile(part) for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
    found = pd.DataFrame({"count": groups.count()} | folds | {"max": groups.max()}).reset_index()
    order = {name: number for number, name in enumerate(MEASURES)}
    return found.sort_values("measure", key=lambda names: names.map(order), kind="stable").reset_index(drop=True)
