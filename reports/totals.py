"""Agents side by side: the totals of each, and per scenario the sentences in which they differ."""

from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean, median

from wedgehog.reports.campaign_folder import FIX_ROWS, NO_FAMILY, StoredCampaign, agent_order
from wedgehog.reports.played_cells import DECIDED, UNDECIDED, Key, PlayedCell, cells_of
from wedgehog.reports.result_category import verdict_category
from wedgehog.reports.words import count, least_money, many, money, seconds

OVER_OWN_LIMITS = "Over their own limits, which are not judged here"
NAMED = 4
"""How many scenarios with one bound are named; the rest is counted."""
MUCH_MORE = 2.0
"""Agents with the same verdict differ if one makes this many times the paid calls of the other, and two more.

So do agents of which one takes this many times the other's time, and two seconds more.
"""
MUCH_MORE_OFTEN = 0.5
"""Agents that both failed differ if one failed in so much a greater share of its repeats."""


def side_by_side(campaign: StoredCampaign) -> Iterator[tuple[int, str]]:
    """The totals of each agent (depth 0), then each scenario in which they differ (0) with a sentence for each (1).

    The verdict counts, whatever is expected, as in a comparison of two runs.
    Nothing for one agent. The variants of a specimen have a table of their own.
    """
    cells = {key: cell for key, cell in cells_of(campaign, verdict_category).items() if not _is_variant(campaign, key)}
    if len({agent for _, agent in cells}) > 1:
        yield from ((0, line) for line in total_lines(cells.values()))
        for scenario, alike in _apart(cells):
            yield 0, f"{scenario}:"
            yield from ((1, sentence(cell)) for cell in alike)


def _is_variant(campaign: StoredCampaign, key: Key) -> bool:
    """Whether it is a specimen's variant in its own incident; any other agent may have such a name too."""
    scenario, agent = key
    return campaign.family(scenario) != NO_FAMILY and agent.startswith(FIX_ROWS)


def bounds(campaign: StoredCampaign) -> Iterator[str]:
    """`A turn of every agent may take 120 s, the stock bound: stall-once.` Nothing without a common bound."""
    found: dict[str, dict[str, None]] = {}
    for run in campaign.runs:
        if run.judgement.bound:
            found.setdefault(run.judgement.bound, {})[run.judgement.scenario] = None
    for bound, scenarios in found.items():
        names = list(scenarios)
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"A turn of every agent may take {bound}: {', '.join(names[:NAMED])}{more}."


def over_own_limits(campaign: StoredCampaign) -> Iterator[str]:
    """`stall-once, mine (2 runs): turn 1 took 9.0 s, 5.0 s allowed`: over the tighter limit of its own spec."""
    found: dict[Key, list[str]] = {}
    for judged in (run.judgement for run in campaign.runs if run.judgement.own_limit):
        found.setdefault((judged.scenario, judged.agent), []).append(judged.own_limit)
    for (scenario, agent), said in found.items():
        yield f"{scenario}, {agent} ({many(len(said), 'run')}): {said[0]}"


def total_lines(cells: Iterable[PlayedCell]) -> Iterator[str]:
    """`mine: passed 9 of 12, 31 paid calls, simulated cost $0.12, turns of 43.0 s`. A cell counts once."""
    by_agent: dict[str, list[PlayedCell]] = {}
    for cell in cells:
        by_agent.setdefault(cell.agent, []).append(cell)
    for agent in sorted(by_agent, key=agent_order):
        yield f"{agent}: {_total(by_agent[agent])}"


def _total(cells: list[PlayedCell]) -> str:
    passed = sum(cell.is_pass for cell in cells)
    usd = [median(cell.usd) for cell in cells if cell.usd]
    known = len(usd) == sum(bool(cell.decided) for cell in cells)
    least = "at least " if any(cell.at_least for cell in cells) else ""
    cost = f"{least}{(least_money if least else money)(sum(usd))}" if known else "unknown"
    calls = sum(median(cell.paid_calls) for cell in cells if cell.paid_calls)
    turns = sum(median(cell.turn_s) for cell in cells if cell.turn_s)
    called = f"{least}{'1 paid call' if calls == 1 else f'{count(calls)} paid calls'}"
    undecided = sum(bool(cell.undecided) and not cell.decided for cell in cells)
    without = f", without {many(undecided, 'undecided scenario')}" if undecided else ""
    paid = f"{called}, simulated cost {cost}"
    return f"passed {passed} of {many(len(cells), 'scenario')}, {paid}, turns of {seconds(turns)}{without}"


def _apart(cells: Mapping[Key, PlayedCell]) -> Iterator[tuple[str, list[PlayedCell]]]:
    by_scenario: dict[str, list[PlayedCell]] = {}
    for cell in cells.values():
        by_scenario.setdefault(cell.scenario, []).append(cell)
    for scenario, alike in by_scenario.items():
        if len(alike) > 1 and _differ(alike):
            yield scenario, sorted(alike, key=lambda it: agent_order(it.agent))


def sentence(cell: PlayedCell) -> str:
    """`mine: failed 2, passed 1 of 3; 4 paid calls; turn 5.00 s: turn 1 gave no answer …`"""
    parts = [cell.reads()]
    if cell.paid_calls:
        parts.append(f"{'at least ' if cell.at_least else ''}{count(median(cell.paid_calls))} paid")
    if cell.turn_s:
        parts.append(f"turn {seconds(median(cell.turn_s))}")
    worst = next((name for name in (*reversed(UNDECIDED), *reversed(DECIDED)) if cell.results.get(name)), "")
    said = cell.says.get(worst, "")
    return f"{cell.agent}: {', '.join(parts)}{f': {said}' if said else ''}"


def _differ(cells: list[PlayedCell]) -> bool:
    if len({(cell.worst, bool(cell.undecided)) for cell in cells}) > 1:
        return True
    shares = [fmean(cell.failures) for cell in cells if cell.decided]
    if shares and max(shares) - min(shares) >= MUCH_MORE_OFTEN:
        return True
    calls = [median(cell.paid_calls) for cell in cells if cell.paid_calls]
    times = [median(cell.turn_s) for cell in cells if cell.turn_s]
    return _much_more(calls) or _much_more(times)


def _much_more(numbers: list[float]) -> bool:
    """Whether the greatest is so many times the smallest, and two more: calls, or seconds."""
    return len(numbers) > 1 and max(numbers) >= max(MUCH_MORE * min(numbers), min(numbers) + 2)
