"""What each agent's runs cost, how long users waited, the database, the faults; times are as measured."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from wedgehog.reports.campaign_folder import agent_order
from wedgehog.reports.repeats import flaky
from wedgehog.reports.words import NONE, brief, count, many, missing, money, seconds

SPENT = (
    *("paid_calls", "refused_calls", "tokens_billed", "tokens_delivered", "cost_usd", "calls_s"),
    *("peak_calls_per_min", "peak_usd_per_min"),
)
TIMES = ("turn_s", "first_error_s", "recovery_s", "queries", "queries_s", "queries_share")
SCRIPTED = ("scripted", "both")
"""Values of the column `usage` that mean: the script sets the tokens, and so the cost."""


def worst(table: pd.DataFrame) -> pd.DataFrame:
    """One row per scenario and agent, with the largest number of its repeats; money without a known price is NaN."""
    numbers = [*SPENT, *TIMES]
    played = table[table["verdict"] != "skipped"]
    kept = ["scenario", "agent", "usage", "at_least", "report_number"]
    if not len(played):
        return pd.DataFrame(columns=[*kept, *numbers])
    values = played[kept].join(played[numbers].astype(float))
    folds: dict[str, Any] = dict.fromkeys(SPENT, lambda column: float(column.max(skipna=False))) | dict.fromkeys(
        TIMES, "max"
    )
    folds |= {"usage": _usage, "at_least": "any", "report_number": "first"}
    return values.groupby(["scenario", "agent"], sort=False).agg(folds).reset_index()


def per_answer(table: pd.DataFrame) -> pd.DataFrame:
    """Per scenario and agent, over all repeats: dollars and tokens billed per *answered* turn, and the wasted share.

    Wasted are dollars for calls that completed no text block and no tool call. Without an answer, NaN.
    """
    played = table[table["verdict"] != "skipped"]
    names = ["cost_usd", "wasted_usd", "tokens_billed", "answered_turns"]
    sums = played[["scenario", "agent"]].join(played[names].astype(float))
    found = sums.groupby(["scenario", "agent"], sort=False)[names].sum(min_count=1)
    found["unpriced"] = sums["cost_usd"].isna().groupby([sums["scenario"], sums["agent"]], sort=False).any()
    answers = found["answered_turns"].where(found["answered_turns"] > 0)
    usd = found["cost_usd"].mask(found["unpriced"])
    found["usd_per_answer"], found["tokens_per_answer"] = usd / answers, found["tokens_billed"] / answers
    found["wasted_share"] = found["wasted_usd"] / usd.where(usd > 0)
    return found[["answered_turns", "usd_per_answer", "tokens_per_answer", "wasted_share"]].reset_index()


def _usage(column: "pd.Series[str]") -> str:
    return next((said for said in column if said in SCRIPTED), "counted")


def total_usd(table: pd.DataFrame) -> float | None:
    """What all runs together cost; None if a price is unknown."""
    played = table[table["verdict"] != "skipped"]
    total = float(played["cost_usd"].astype(float).sum(skipna=False)) if len(played) else 0.0
    return None if total != total else total  # noqa: PLR0124  NaN is the one number unlike itself


def total_words(table: pd.DataFrame) -> str:
    """`simulated cost $145.27`; `at least $0.145` if recording ended while an agent still made calls.

    No provider was paid: the tokens are those of the fake one, at list prices.
    """
    total = total_usd(table)
    least = "at least " if total is not None and table["at_least"].eq(True).any() else ""
    return f"simulated cost {least}{money(total)}"


def cost_words(row: Mapping[Any, Any]) -> str:
    """The cost in a row: `≥ $0.145` is a lower bound, `$3.88*` follows from tokens that the script sets."""
    least = "≥ " if row["at_least"] and not missing(row["cost_usd"]) else ""
    return f"{least}{money(row['cost_usd'])}{'*' if row['usage'] in SCRIPTED else ''}"


def numbers(row: Mapping[Any, Any]) -> Sequence[str]:
    """Paid calls, tokens billed and delivered, cost, turn, first error and recovery of a row, as text."""
    return (
        count(row["paid_calls"]),
        brief(row["tokens_billed"]),
        brief(row["tokens_delivered"]),
        NONE if missing(row["paid_calls"]) else cost_words(row),
        *(seconds(row[name]) for name in ("turn_s", "first_error_s", "recovery_s")),
    )


def notes(rows: Iterable[Mapping[Any, Any]]) -> Iterator[str]:
    """What the signs beside the costs of these rows mean."""
    shown = [row for row in rows if not missing(row["paid_calls"])]
    if any(row["usage"] in SCRIPTED for row in shown):
        yield "* The script sets the tokens; they are not counted from what was sent."
    if any(row["at_least"] for row in shown):
        yield "≥ The agent still made calls when recording ended: calls, tokens and cost are lower bounds."


# ---- the database


def asked(row: Mapping[Any, Any]) -> str:
    """The database use in a row: `180 queries, 85% of the time`, or a dash without a query."""
    if missing(row["queries"]):
        return NONE
    return f"{many(int(row['queries']), 'query', 'queries')}, {row['queries_share']:.0%} of the time"


# ---- transient and permanent faults


def shares(table: pd.DataFrame) -> list[str]:
    """`answered under transient faults: codex 9 of 11, pi 11 of 11`, and the same for permanent faults, by their tags.

    A transient fault is gone at the next attempt, so a turn that ends in an error is lost without need. A permanent
    fault stays, so each further attempt costs money for nothing. Last come the cells whose repeats do not agree.
    """
    if not len(table):
        return []
    known = table[table["harmed_answered"].notna()]
    answered = _of(known, "transient", lambda runs: f"{int(runs['harmed_answered'].sum())} of {len(runs)}")
    paid = _of(
        table,
        "permanent",
        lambda runs: f"{many(int(runs['paid_calls'].sum()), 'call')} in {many(len(runs), 'run')}",
    )
    lines = (("answered under transient faults", answered), ("paid under permanent faults", paid))
    said = [f"{what}: {', '.join(words)}" for what, words in lines if words]
    return [*said, *_strict(table), *flaky(table[["scenario", "agent", "standing"]].to_dict("records"))]


def _strict(table: pd.DataFrame) -> list[str]:
    """`at level strict 3 more runs fail: codex 1 (no_traceback 1), pi 2 (exit_code_tells 2)`; nothing if none does."""
    more = table[(table["level"] == "safe") & (table["verdict"] == "pass") & (table["strict"] != "")]
    if not len(more):
        return []
    said = []
    for agent, runs in more.groupby("agent", sort=False):
        names = runs["strict"].str.split(";").explode().value_counts()
        said.append(f"{agent} {len(runs)} ({', '.join(f'{name} {times}' for name, times in names.items())})")
    return [f"at level strict {many(len(more), 'more run')} would fail: {'; '.join(said)}"]


def _of(table: pd.DataFrame, tag: str, says: Callable[[pd.DataFrame], str]) -> list[str]:
    tagged = table["tags"].map(lambda tags: tag in tags.split(";")).astype(bool)
    decided = table["verdict"].isin(("pass", "fail"))
    faulty = table[tagged & decided & (table["faults_fired"] > 0) & (table["standing"] != "shown")]
    agents = sorted((str(name) for name in faulty["agent"].unique()), key=agent_order)
    return [f"{agent} {says(faulty[faulty['agent'] == agent])}" for agent in agents]
