"""What each agent's runs cost, how long users waited, the database, the faults; times are as measured."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from wedgehog.harness.record.ledger import LEAST_S, MINUTE_S
from wedgehog.reports.campaign_folder import StoredCampaign, agent_order
from wedgehog.reports.groups import grouped
from wedgehog.reports.repeats import SPENT, WAITED, cell_of, flaky, largest
from wedgehog.reports.rows import RunRow, played
from wedgehog.reports.words import NONE, brief, count, least_money, many, money, seconds

QUERIES = ("queries", "queries_s", "queries_share")
SCRIPTED = ("scripted", "both")
"""Values of the column `usage` that mean: the script sets the tokens, and so the cost."""

LOWER_BOUNDS = (
    "The agent was stopped, or recording ended, before its work was done: calls, tokens and cost are lower bounds."
)


def worst(table: Iterable[RunRow]) -> list[RunRow]:
    """One row per scenario and agent, with the largest number of its repeats; a missing price makes it unknown."""
    return [_worst(runs) for runs in grouped(played(table), cell_of).values()]


def _worst(runs: Sequence[RunRow]) -> RunRow:
    most = {name: largest(runs, name) for name in (*SPENT, *WAITED, *QUERIES)}
    unknown = {name: None for name in SPENT if any(getattr(run, name) is None for run in runs)}
    usage = next((run.usage for run in runs if run.usage in SCRIPTED), "counted")
    return replace(runs[0], **most | unknown, usage=usage, at_least=any(run.at_least for run in runs))


@dataclass(frozen=True, slots=True)
class PerAnswer:
    """Dollars and tokens billed per *answered* turn, and the wasted share of the dollars.

    Wasted are dollars for calls that completed no text block and no tool call. Without an answer, `tokens` is None.
    """

    usd: float | None
    tokens: float | None
    wasted_share: float | None


def per_answer(table: Iterable[RunRow]) -> dict[tuple[str, str], PerAnswer]:
    """By scenario and agent, over all repeats."""
    return {cell: _per_answer(runs) for cell, runs in grouped(played(table), cell_of).items()}


def _per_answer(runs: Sequence[RunRow]) -> PerAnswer:
    answers = sum(run.answered_turns or 0 for run in runs)
    tokens = sum(run.tokens_billed or 0 for run in runs)
    usd, wasted = total_usd(runs), sum(run.wasted_usd or 0.0 for run in runs)
    return PerAnswer(
        usd / answers if usd is not None and answers else None,
        tokens / answers if answers else None,
        wasted / usd if usd else None,
    )


def total_usd(table: Iterable[RunRow]) -> float | None:
    """What all runs together cost; None if a price is unknown."""
    prices = [run.cost_usd for run in played(table)]
    known = [usd for usd in prices if usd is not None]
    return sum(known) if len(known) == len(prices) else None


def total_words(table: Sequence[RunRow]) -> str:
    """`simulated cost $145.27`; `at least $0.145` if an agent's work was not done at the end.

    No provider was paid: the tokens are those of the fake one, at list prices.
    """
    total = total_usd(table)
    if total is not None and any(run.at_least for run in table):
        return f"simulated cost at least {least_money(total)}"
    return f"simulated cost {money(total)}"


def count_words(row: RunRow, number: float | None, words: Callable[[float | None], str] = count) -> str:
    """A number of calls or tokens in a row: `≥ 45` is a lower bound."""
    return f"≥ {words(number)}" if row.at_least and number else words(number)


def cost_words(row: RunRow) -> str:
    """The cost in a row: `≥ $0.145` is a lower bound, `$3.88*` follows from tokens that the script sets."""
    said = f"≥ {least_money(row.cost_usd)}" if row.at_least and row.cost_usd is not None else money(row.cost_usd)
    return f"{said}{'*' if row.usage in SCRIPTED else ''}"


def numbers(row: RunRow) -> Sequence[str]:
    """Paid calls, tokens billed and delivered, cost, turn, first error and recovery of a row, as text."""
    return (
        count_words(row, row.paid_calls),
        *(count_words(row, tokens, brief) for tokens in (row.tokens_billed, row.tokens_delivered)),
        NONE if row.paid_calls is None else cost_words(row),
        *map(seconds, (row.turn_s, row.first_error_s, row.recovery_s)),
    )


def notes(rows: Iterable[RunRow]) -> Iterator[str]:
    """What the signs beside the numbers of these rows mean, and whose price stands for that of an unknown model."""
    shown = [row for row in rows if row.paid_calls is not None]
    yield from dict.fromkeys(row.prices for row in shown if row.prices)
    if any(row.usage in SCRIPTED for row in shown):
        yield "* The script sets the tokens; they are not counted from what was sent."
    if any(row.at_least for row in shown):
        yield f"≥ {LOWER_BOUNDS}"


# ---- the database


def asked(row: RunRow) -> str:
    """The database use in a row: `180 queries, 85% of the time`, or a dash without a query."""
    if row.queries is None or row.queries_share is None:
        return NONE
    return f"{many(row.queries, 'query', 'queries')}, {row.queries_share:.0%} of the time"


# ---- transient and permanent faults


def of_the_campaign(campaign: StoredCampaign, table: Sequence[RunRow]) -> list[str]:
    """The programs that were edited meanwhile, then `shares`."""
    return [*campaign.edited, *shares(table)]


def shares(table: Sequence[RunRow]) -> list[str]:
    """`answered under transient faults: codex 9 of 11, pi 11 of 11`, and the same for permanent faults, by their tags.

    A transient fault is gone at the next attempt, so a turn that ends in an error is lost without need. A permanent
    fault stays, so each further attempt costs money for nothing. Last come the cells whose repeats do not agree.
    """
    known = [run for run in table if run.harmed_answered is not None]
    lines = (
        ("answered under transient faults", _of(known, "transient", _answered)),
        ("paid under permanent faults", _of(table, "permanent", _paid)),
    )
    said = [f"{what}: {', '.join(words)}" for what, words in lines if words]
    return [*said, *_strict(table), *flaky(table)]


def _answered(runs: Sequence[RunRow]) -> str:
    return f"{sum(bool(run.harmed_answered) for run in runs)} of {len(runs)}"


def _paid(runs: Sequence[RunRow]) -> str:
    return f"{many(sum(run.paid_calls or 0 for run in runs), 'call')} in {many(len(runs), 'run')}"


def _of(table: Iterable[RunRow], tag: str, says: Callable[[Sequence[RunRow]], str]) -> list[str]:
    by_agent = grouped((run for run in table if _shows_fault(run, tag)), lambda run: run.agent)
    return [f"{agent} {says(by_agent[agent])}" for agent in sorted(by_agent, key=agent_order)]


def _shows_fault(run: RunRow, tag: str) -> bool:
    """Whether a fault with this tag fired in a decided run that counts."""
    counts = run.verdict in ("pass", "fail") and run.standing != "shown"
    return counts and bool(run.faults_fired) and tag in run.tags.split(";")


def _strict(table: Iterable[RunRow]) -> list[str]:
    """`at level strict 3 more runs fail: codex 1 (no_traceback 1), pi 2 (exit_code_tells 2)`; nothing if none does."""
    more = [run for run in table if run.level == "safe" and run.verdict == "pass" and run.strict]
    if not more:
        return []
    said = []
    for agent, runs in grouped(more, lambda run: run.agent).items():
        names = Counter(name for run in runs for name in run.strict.split(";")).most_common()
        said.append(f"{agent} {len(runs)} ({', '.join(f'{name} {times}' for name, times in names)})")
    return [f"at level strict {many(len(more), 'more run')} would fail: {'; '.join(said)}"]


def pace(per_min: float | None, calls: int, calls_s: float) -> str:
    """The highest rate; of a run of less than a minute it is the pace of all its calls."""
    if per_min is None:
        return ""
    if calls_s >= MINUTE_S:
        return f"peak {brief(per_min)} calls/min"
    least = f", counted as {LEAST_S:g} s" if calls_s < LEAST_S else ""
    return f"{brief(per_min)} calls/min ({calls:,} calls in {seconds(calls_s)}{least})"
