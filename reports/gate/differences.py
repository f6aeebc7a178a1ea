"""What got worse, better, new or gone between two sides: a baseline and a run, two runs, or two agents of a run."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from statistics import median
from types import MappingProxyType

from wedgehog.reports.campaign_folder import StoredCampaign, Unfinished
from wedgehog.reports.gate.alike_repeats import alike_repeats
from wedgehog.reports.gate.difference import KINDS, Difference, DifferenceKind
from wedgehog.reports.gate.number_differences import FALSE_ALARMS, number_differences
from wedgehog.reports.gate.quantities import QUANTITIES, Quantity
from wedgehog.reports.gate.result_differences import one_sided, result_differences
from wedgehog.reports.gate.tested_numbers import TOGETHER, tested_numbers
from wedgehog.reports.gate.turn_bounds import Pair, is_cut_by_another_bound
from wedgehog.reports.groups import grouped
from wedgehog.reports.played_cells import Key, PlayedCell
from wedgehog.reports.words import many, money


def differences(
    before: Mapping[Key, PlayedCell],
    after: Mapping[Key, PlayedCell],
    rate: float = FALSE_ALARMS,
    quantities: Iterable[Quantity] = tuple(QUANTITIES.values()),
    skipped: Mapping[Key, str] = MappingProxyType({}),
    skipped_before: Mapping[Key, str] = MappingProxyType({}),
) -> list[Difference]:
    """All differences, one per cell and kind, the worst first. Both mappings have the same names for the same cells.

    `skipped`, `skipped_before`: what the later and the earlier side skipped, with the reason.
    """
    both = [(before[key], after[key]) for key in after if key in before]
    found = [
        *one_sided(before, after, skipped_before, skipped),
        *(it for pair in both for it in result_differences(*pair)),
    ]
    found += unknown_costs(both)
    both, compared = [pair for pair in both if not is_cut_by_another_bound(*pair)], list(quantities)
    for better in (False, True):
        alike = alike_repeats(both, better=better)
        found += number_differences(tested_numbers(alike, compared, better=better), rate)
    return worst_first(_joined(found))


def worst_first(found: Iterable[Difference]) -> list[Difference]:
    """Differences by their kind, and those of one kind by their weight."""
    return sorted(found, key=lambda it: (KINDS.index(it.kind), -it.weight))


def _joined(found: Iterable[Difference]) -> Iterator[Difference]:
    """One line per cell and kind."""
    groups: dict[tuple[str, str, DifferenceKind], list[Difference]] = {}
    for it in found:
        groups.setdefault((it.scenario, it.agent, it.kind), []).append(it)
    for alike in groups.values():
        ordered = sorted(alike, key=lambda it: -it.weight)
        yield replace(ordered[0], says="; ".join(it.says for it in ordered))


def unfinished(campaign: StoredCampaign, of: Iterable[Unfinished]) -> list[Difference]:
    """One difference for each of these runs of a campaign, which have no verdict."""
    return [Difference(campaign.place(run.folder), "", "undecided", f"unfinished: {run.why}") for run in of]


def exit_code(found: Iterable[Difference]) -> int:
    """1 if something is worse; else 3 if something is undecided; else 0."""
    kinds = {it.kind for it in found}
    return 1 if "worse" in kinds else 3 if "undecided" in kinds else 0


def unchanged(cells: Iterable[Key], found: Iterable[Difference]) -> set[Key]:
    """The cells without a difference; a difference of all cells of an agent counts for each."""
    told = {(it.scenario, it.agent) for it in found}
    return {key for key in cells if key not in told and (TOGETHER, key[1]) not in told}


def unknown_costs(both: Iterable[Pair]) -> Iterator[Difference]:
    """One difference per cell, or one for all cells of an agent."""
    for agent, pairs in grouped(both, lambda pair: pair[1].agent).items():
        lost = [pair for pair in pairs if _is_lost(*pair)]
        if len(lost) > 1 and len(lost) == len(pairs):
            of = f"the simulated cost of {many(len(lost), 'result')}"
            says = f"{of} was known before and is unknown now: it is not compared"
            yield Difference(TOGETHER, agent, "maybe", says)
        else:
            yield from (_difference(*pair) for pair in lost)


def _is_lost(before: PlayedCell, after: PlayedCell) -> bool:
    return bool(before.usd and after.paid_calls and not after.usd)


def _difference(before: PlayedCell, after: PlayedCell) -> Difference:
    says = f"simulated cost {money(median(before.usd))} → unknown: it is not compared"
    return Difference(after.scenario, after.agent, "maybe", says)
