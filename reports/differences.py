"""What got worse, better, new or gone between two sides: a baseline and a run, two runs, or two agents of a run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Literal

from wedgehog.reports.campaign_folder import StoredCampaign, Unfinished
from wedgehog.reports.played_cells import DECIDED, UNDECIDED, Key, PlayedCell
from wedgehog.reports.quantities import QUANTITIES, Quantity
from wedgehog.reports.rank_test import can_decide, rank_test, real, repeats_needed
from wedgehog.reports.tested_numbers import FEW, TOGETHER, TestedNumber, tested_numbers
from wedgehog.reports.turn_bounds import fails_whatever_the_bound, is_cut_by_another_bound, says_another_bound
from wedgehog.reports.words import many

FALSE_ALARMS = 0.005
"""The share of campaigns of an unchanged agent in which the tests of numbers may call any of them worse."""

FAILED_BY_CHANCE = 0.01
"""A scenario that failed before too is worse if its failures rise by chance at most so often. Each is tested alone."""

DifferenceKind = Literal["worse", "undecided", "maybe", "known", "new", "gone", "better"]
"""`maybe`: the numbers differ, and the repeats are too few to decide, or it waited for a processor.
`known`: it passed before, and now it fails, which the spec excuses."""
KINDS: tuple[DifferenceKind, ...] = ("worse", "undecided", "maybe", "known", "new", "gone", "better")
KIND_SIGNS: Mapping[DifferenceKind, str] = {
    "worse": "✗",
    "undecided": "?",
    "maybe": "~",
    "known": "~",
    "new": "+",
    "gone": "-",
    "better": "✓",
}
KIND_WORDS: Mapping[DifferenceKind, str] = {kind: kind for kind in KINDS} | {"maybe": "not sure"}


@dataclass(frozen=True)
class Difference:
    """One difference of one scenario and agent, in a sentence."""

    scenario: str
    agent: str
    kind: DifferenceKind
    says: str
    weight: float = 0.0
    """Larger is worse; orders the differences of one kind."""

    @property
    def where(self) -> str:
        """`scenario, agent`; what is of no agent has only its place."""
        return f"{self.scenario}, {self.agent}" if self.agent else self.scenario


def differences(
    before: Mapping[Key, PlayedCell],
    after: Mapping[Key, PlayedCell],
    rate: float = FALSE_ALARMS,
    quantities: Iterable[Quantity] = tuple(QUANTITIES.values()),
) -> list[Difference]:
    """All differences, one per cell and kind, the worst first. Both mappings have the same names for the same cells."""
    both = [(before[key], after[key]) for key in after if key in before]
    compared = list(quantities)
    found = [*_one_sided(before, after), *(it for pair in both for it in _verdicts(*pair))]
    both = [pair for pair in both if not is_cut_by_another_bound(*pair)]
    for better in (False, True):
        found += _numbers(tested_numbers(both, compared, better=better), rate)
    return sorted(_joined(found), key=lambda it: (KINDS.index(it.kind), -it.weight))


def unfinished(campaign: StoredCampaign, of: Iterable[Unfinished]) -> list[Difference]:
    """One difference for each of these runs of a campaign, which have no verdict."""
    return [Difference(campaign.place(run.folder), "", "undecided", f"unfinished: {run.why}") for run in of]


def exit_code(found: Iterable[Difference]) -> int:
    """1 if something is worse; else 3 if something is undecided; else 0."""
    kinds = {it.kind for it in found}
    return 1 if "worse" in kinds else 3 if "undecided" in kinds else 0


def unchanged(cells: Iterable[Key], found: Iterable[Difference]) -> set[Key]:
    """The cells of which nothing is told; what is told of all cells of an agent is told of each."""
    told = {(it.scenario, it.agent) for it in found}
    return {key for key in cells if key not in told and (TOGETHER, key[1]) not in told}


# ---- verdicts


def _one_sided(before: Mapping[Key, PlayedCell], after: Mapping[Key, PlayedCell]) -> Iterator[Difference]:
    for key, cell in after.items():
        if key not in before:
            if not cell.results.get("failed") and not cell.undecided:
                yield Difference(*key, "new", f"no earlier result; now {cell.reads()}")
            if cell.results.get("failed"):
                yield Difference(*key, "worse", f"new, and {cell.reads()}{_because(cell, 'failed')}", 900.0)
            yield from _unclear(cell)
    for key, cell in before.items():
        if key not in after:
            yield Difference(*key, "gone", f"not played now; before {cell.reads()}")


def _verdicts(before: PlayedCell, after: PlayedCell) -> Iterator[Difference]:
    key = (after.scenario, after.agent)
    yield from _unclear(after)
    if not before.decided or not after.decided:
        return
    if is_cut_by_another_bound(before, after):
        says = f"{says_another_bound(before, after)}{_because(after, 'failed')}"
        yield Difference(*key, "maybe", says, 950.0)
        if not fails_whatever_the_bound(before, after):
            return
    worse = DECIDED.index(after.worst) - DECIDED.index(before.worst)
    moved = f"{before.reads()} → {after.reads()}"
    if worse > 0:
        kind: DifferenceKind = "worse" if after.worst == "failed" else "known"
        yield Difference(*key, kind, f"{moved}{_because(after, after.worst)}", 1000.0)
    elif worse < 0:
        yield Difference(*key, "better", moved, 1000.0)
    elif after.worst == "failed":
        yield from _other_violations(before, after)
        yield from _failed_share(before, after)


def _failed_share(before: PlayedCell, after: PlayedCell) -> Iterator[Difference]:
    """Both failed, and now another share of the repeats. A smaller share that chance can explain has no line."""
    old, new = before.failures, after.failures
    better = fmean(new) < fmean(old)
    p = (rank_test(new, old) if better else rank_test(old, new)).p
    says = f"failed {sum(old):.0f} of {len(old)} → {sum(new):.0f} of {len(new)} (p = {p:.2g}"
    key = (after.scenario, after.agent)
    if p <= FAILED_BY_CHANCE:
        because = "" if better else _because(after, "failed")
        yield Difference(*key, "better" if better else "worse", f"{says}){because}", 850.0)
    elif fmean(new) > fmean(old):
        yield Difference(*key, "maybe", f"{says}; at most {FAILED_BY_CHANCE} decides)", 850.0)


def _other_violations(before: PlayedCell, after: PlayedCell) -> Iterator[Difference]:
    """Both failed, and now in each failed repeat by what no repeat violated before."""
    new = sorted(set(after.always_violated) - set(before.violated))
    if new and before.violated:
        fewest = min(before.results.get("failed", 0), after.results.get("failed", 0))
        says = f"failed by {', '.join(before.violated)} before, now also by {', '.join(new)}{_because(after, 'failed')}"
        sure = fewest >= FEW or (before.as_expected is True and after.as_expected is False)
        yield Difference(after.scenario, after.agent, "worse" if sure else "maybe", says, 800.0)


def _unclear(cell: PlayedCell) -> Iterator[Difference]:
    if cell.undecided:
        result = next(name for name in reversed(UNDECIDED) if cell.results.get(name))
        yield Difference(cell.scenario, cell.agent, "undecided", f"{cell.reads()}{_because(cell, result)}")


def _because(cell: PlayedCell, result: str) -> str:
    said = cell.says.get(result, "")
    return f": {said}" if said else ""


# ---- numbers


def _numbers(tested: Sequence[TestedNumber], rate: float) -> Iterator[Difference]:
    """What is worse (or better) in one cell, and where no cell shows it, in all cells of an agent together."""
    tests = [it.test for it in tested]
    named: set[Key] = set()
    excused: set[Key] = set()
    for it, is_real, decides in zip(tested, real(tests, rate), can_decide(tests, rate), strict=True):
        found = _difference_of(it, is_real=is_real, decides=decides, needed=repeats_needed(len(tests), rate))
        if found is None or (it.is_pool and it.what in (named | excused if found.kind == "maybe" else named)):
            continue
        yield found
        if found.kind != "maybe":
            named.add(it.what)
        elif not it.over_floor:
            excused.add(it.what)


def _difference_of(it: TestedNumber, *, is_real: bool, decides: bool, needed: int | None) -> Difference | None:
    """The difference that a test shows, if any; only a cell of its own can be beyond the margin, or too few."""
    if not it.over_floor:
        waited = not it.better and _waited(it, is_real=is_real, decides=decides)
        return _difference(it, "maybe", _of_waits(it)) if waited else None
    cannot_decide = not decides and not it.is_pool
    if is_real or (cannot_decide and it.beyond_margin):
        return _difference(it, "better" if it.better else "worse", _why(it, is_real=is_real))
    if cannot_decide and not it.better and it.test.least_p < 1:
        return _difference(it, "maybe", _too_few(it, needed))
    return None


def _why(it: TestedNumber, *, is_real: bool) -> str:
    return f"p = {it.test.p:.2g}" if is_real else "beyond the margin"


def _waited(it: TestedNumber, *, is_real: bool, decides: bool) -> bool:
    """Whether it grew, by more than the floor with its waits for a processor."""
    grew = is_real or (not decides and min(it.high) > max(it.low))
    return grew and it.is_above_floor(median(it.high))


def _of_waits(it: TestedNumber) -> str:
    return (
        f"but {it.quantity.words(median(it.waits))} of it waited for a processor: "
        "play it on a quiet machine, or the agent itself keeps the processors busy"
    )


def _too_few(it: TestedNumber, needed: int | None) -> str:
    says = f"{len(it.old)} and {many(len(it.new), 'repeat')} cannot decide"
    if needed is not None and min(len(it.old), len(it.new)) >= needed:
        return f"{says}: too many of them are equal"
    return f"{says}; {needed} of each can"


def _difference(it: TestedNumber, kind: DifferenceKind, why: str) -> Difference:
    old, new = median(it.old), median(it.new)
    change = f", {new / old - 1:+.0%}" if old else ""
    says = f"{it.quantity.name} {it.quantity.words(old)} → {it.quantity.words(new)}{change} ({why})"
    ratio = median(it.high) / median(it.low) if median(it.low) else 100.0
    return Difference(it.scenario, it.agent, kind, says, min(ratio, 100.0))


def _joined(found: Iterable[Difference]) -> Iterator[Difference]:
    """One line per cell and kind."""
    groups: dict[tuple[str, str, DifferenceKind], list[Difference]] = {}
    for it in found:
        groups.setdefault((it.scenario, it.agent, it.kind), []).append(it)
    for alike in groups.values():
        ordered = sorted(alike, key=lambda it: -it.weight)
        yield replace(ordered[0], says="; ".join(it.says for it in ordered))
