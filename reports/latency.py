"""How long things took: one sample for each call, tool, turn, error and recovery, and their quantiles over repeats."""

import pandas as pd

from wedgehog.harness.record.store import StoredRun
from wedgehog.reports.campaign_folder import StoredCampaign

MEASURES = ("first byte", "call", "tool", "turn", "first error", "recovery")
KEYS = ("family", "scenario", "agent", "measure")
QUANTILES = ("count", "p50", "p95", "p99", "max")


def samples(campaign: StoredCampaign) -> pd.DataFrame:
    """One row per measured time: family, scenario, agent, repeat, measure, seconds. Recovery turns count only there."""
    rows = [
        (campaign.family(run.judgement.scenario), *_place(run), measure, taken_s)
        for run in campaign.runs
        if not run.judgement.skipped
        for measure, taken_s in campaign.numbers[run.folder].times
    ]
    return pd.DataFrame(rows, columns=["family", "scenario", "agent", "repeat", "measure", "seconds"])


def _place(run: StoredRun) -> tuple[str, str, int]:
    return run.judgement.scenario, run.judgement.agent, run.judgement.repeat


def latency(taken: pd.DataFrame) -> pd.DataFrame:
    """Count, p50, p95, p99 and maximum of each measure, per scenario and agent; quantiles are interpolated."""
    if not len(taken):
        return pd.DataFrame(columns=[*KEYS, *QUANTILES])
    groups = taken.groupby(list(KEYS), sort=False)["seconds"]
    folds = {name: groups.quantile(part) for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
    found = pd.DataFrame({"count": groups.count()} | folds | {"max": groups.max()}).reset_index()
    order = {name: number for number, name in enumerate(MEASURES)}
    return found.sort_values("measure", key=lambda names: names.map(order), kind="stable").reset_index(drop=True)
