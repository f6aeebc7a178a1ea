"""Where the cost was known before and is not now, as after a change to a model without a price."""

from collections.abc import Iterable, Iterator
from statistics import median

from wedgehog.reports.gate.difference import Difference
from wedgehog.reports.gate.tested_numbers import TOGETHER
from wedgehog.reports.gate.turn_bounds import Pair
from wedgehog.reports.groups import grouped
from wedgehog.reports.played_cells import PlayedCell
from wedgehog.reports.words import many, money


def unknown_costs(both: Iterable[Pair]) -> Iterator[Difference]:
    """One difference per cell, or one for all cells of an agent."""
    for agent, pairs in grouped(both, lambda pair: pair[1].agent).items():
        lost = [pair for pair in pairs if _is_lost(*pair)]
        if len(lost) > 1 and len(lost) == len(pairs):
            says = f"the cost of {many(len(lost), 'result')} was known before and is unknown now: it is not compared"
            yield Difference(TOGETHER, agent, "maybe", says)
        else:
            yield from (_difference(*pair) for pair in lost)


def _is_lost(before: PlayedCell, after: PlayedCell) -> bool:
    return bool(before.usd and after.paid_calls and not after.usd)


def _difference(before: PlayedCell, after: PlayedCell) -> Difference:
    says = f"cost {money(median(before.usd))} → unknown: it is not compared"
    return Difference(after.scenario, after.agent, "maybe", says)
