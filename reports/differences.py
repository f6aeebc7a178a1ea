"""What got worse, better, new or gone between two sides: a baseline and a run, two runs, or two agents of a run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from wedgehog.reports.played_cells import DECIDED, UNDECIDED, Key, PlayedCell
from wedgehog.reports.rank_test import RankTest, can_decide, rank_test, real, repeats_needed
from wedgehog.reports.words import count, many, money, seconds

FALSE_ALARMS = 0.005
"""The share of campaigns of an unchanged agent in which the tests may call anything worse."""

FEW = 3
"""Below so many repeats of a side, the margins are wider."""

DifferenceKind = Literal["worse", "undecided", "maybe", "new", "gone", "better"]
"""`maybe`: the numbers differ, and the repeats are too few to decide."""
KINDS: tuple[DifferenceKind, ...] = ("worse", "undecided", "maybe", "new", "gone", "better")
KIND_SIGNS: Mapping[DifferenceKind, str] = {
    "worse": "✗",
    "undecided": "?",
    "maybe": "~",
    "new": "+",
    "gone": "-",
    "better": "✓",
}
KIND_WORDS: Mapping[DifferenceKind, str] = {kind: kind for kind in KINDS} | {"maybe": "too few repeats"}


@dataclass(frozen=True)
class Quantity:
    """A number that is compared. A difference below the floor never counts.

    Where repeats are too few for the test, only a difference beyond the margin counts: every repeat of one side is
    `times` as large as every repeat of the other, and more by `margin`. Below three repeats, both sides may be one odd
    run, and `few_times` and `few_margin` count.
    """

    name: str
    of: Callable[[PlayedCell], Sequence[float]]
    least: Callable[[PlayedCell], Sequence[float]]
    """The values without the part that is not the agent's: they must differ by the floor or the margin too."""
    words: Callable[[float], str]
    floor: float
    margin: float
    times: float
    few_margin: float
    few_times: float
    floor_share: float = 0.1


def _calls(number: float) -> str:
    return count(number) if number == round(number) else f"{number:,.1f}"


def _share(number: float) -> str:
    return f"{number:.0%}"


QUANTITIES: Mapping[str, Quantity] = {
    "paid_calls": Quantity(
        "paid calls",
        lambda it: it.paid_calls,
        lambda it: it.paid_calls,
        _calls,
        floor=1,
        margin=2,
        times=1.5,
        few_margin=4,
        few_times=2.0,
    ),
    "usd": Quantity(
        "cost",
        lambda it: it.usd,
        lambda it: it.usd,
        money,
        floor=0.01,
        margin=0.02,
        times=1.5,
        few_margin=0.05,
        few_times=2.0,
    ),
    "turn_s": Quantity(
        "longest turn",
        lambda it: it.turn_s,
        lambda it: it.turn_least_s or it.turn_s,
        seconds,
        floor=0.2,
        margin=2.0,
        times=2.0,
        few_margin=5.0,
        few_times=4.0,
    ),
}
"""The numbers that are compared, by their keys in a baseline."""

FAILED_SHARE = Quantity(
    "failed runs",
    lambda it: it.failures,
    lambda it: it.failures,
    _share,
    floor=0,
    margin=9,
    times=9,
    few_margin=9,
    few_times=9,
)
"""For cells that failed in both. It has no margin: a share grows by 1 at most."""


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
        """`scenario, agent`."""
        return f"{self.scenario}, {self.agent}"


@dataclass(frozen=True)
class _Tested:
    """A quantity of a cell whose medians differ by the floor or not, with the test."""

    before: PlayedCell
    after: PlayedCell
    quantity: Quantity
    low: tuple[float, ...]
    high: tuple[float, ...]
    least: tuple[float, ...]
    test: RankTest
    better: bool = False


def differences(
    before: Mapping[Key, PlayedCell],
    after: Mapping[Key, PlayedCell],
    rate: float = FALSE_ALARMS,
    quantities: Iterable[Quantity] = tuple(QUANTITIES.values()),
) -> list[Difference]:
    """All differences, one per cell and kind, the worst first. Both mappings have the same names for the same cells."""
    both = [(before[key], after[key]) for key in after if key in before]
    found = [*_one_sided(before, after), *(it for pair in both for it in _verdicts(*pair))]
    for better in (False, True):
        found += _numbers(list(_tested(both, list(quantities), better=better)), rate)
    return sorted(_joined(found), key=lambda it: (KINDS.index(it.kind), -it.weight))


def exit_code(found: Iterable[Difference]) -> int:
    """1 if something is worse; else 3 if something is undecided; else 0."""
    kinds = {it.kind for it in found}
    return 1 if "worse" in kinds else 3 if "undecided" in kinds else 0


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
    worse = DECIDED.index(after.worst) - DECIDED.index(before.worst)
    moved = f"{before.reads()} → {after.reads()}"
    if after.worst == "failed" and worse > 0:
        yield Difference(*key, "worse", f"{moved}{_because(after, 'failed')}", 1000.0)
    elif worse < 0:
        yield Difference(*key, "better", moved, 1000.0)
    elif after.worst == "failed":
        yield from _other_violations(before, after)


def _other_violations(before: PlayedCell, after: PlayedCell) -> Iterator[Difference]:
    """Both failed, and now in each failed repeat by what no repeat violated before."""
    new = sorted(set(after.always_violated) - set(before.violated))
    if new and before.violated:
        fewest = min(before.results.get("failed", 0), after.results.get("failed", 0))
        says = f"failed by {', '.join(before.violated)} before, now also by {', '.join(new)}{_because(after, 'failed')}"
        yield Difference(after.scenario, after.agent, "worse" if fewest >= FEW else "maybe", says, 800.0)


def _unclear(cell: PlayedCell) -> Iterator[Difference]:
    if cell.undecided:
        result = next(name for name in reversed(UNDECIDED) if cell.results.get(name))
        yield Difference(cell.scenario, cell.agent, "undecided", f"{cell.reads()}{_because(cell, result)}")


def _because(cell: PlayedCell, result: str) -> str:
    said = cell.says.get(result, "")
    return f": {said}" if said else ""


# ---- numbers


def _tested(
    both: Iterable[tuple[PlayedCell, PlayedCell]], quantities: Sequence[Quantity], *, better: bool
) -> Iterator[_Tested]:
    for before, after in both:
        for quantity in (*quantities, FAILED_SHARE):
            first, second = (after, before) if better else (before, after)
            low, high, least = (tuple(it) for it in (quantity.of(first), quantity.of(second), quantity.least(second)))
            flip = quantity is FAILED_SHARE and not (first.results.get("failed") and second.results.get("failed"))
            if low and high and not flip:
                yield _Tested(before, after, quantity, low, high, least, rank_test(low, high), better)


def _numbers(tested: Sequence[_Tested], rate: float) -> Iterator[Difference]:
    tests = [it.test for it in tested]
    for it, is_real, able in zip(tested, real(tests, rate), can_decide(tests, rate), strict=True):
        if not _over_floor(it):
            continue
        if is_real:
            yield _difference(it, "better" if it.better else "worse", f"p = {it.test.p:.2g}")
        elif not able and _beyond_margin(it):
            yield _difference(it, "better" if it.better else "worse", "beyond the margin")
        elif not able and not it.better and it.test.least_p < 1:
            yield _difference(it, "maybe", _too_few(it, len(tested), rate))


def _over_floor(it: _Tested) -> bool:
    low, high = median(it.low), median(it.least)
    return high - low >= max(it.quantity.floor, it.quantity.floor_share * low) and high > low


def _beyond_margin(it: _Tested) -> bool:
    low, high = max(it.low), min(it.least)
    few = min(len(it.low), len(it.high)) < FEW
    times, margin = (it.quantity.few_times, it.quantity.few_margin) if few else (it.quantity.times, it.quantity.margin)
    return high >= times * low and high - low >= margin


def _too_few(it: _Tested, tests: int, rate: float) -> str:
    needed, numbers = repeats_needed(tests, rate), (len(it.quantity.of(it.before)), len(it.quantity.of(it.after)))
    return f"{numbers[0]} and {many(numbers[1], 'repeat')} cannot decide; {needed} of each can"


def _difference(it: _Tested, kind: DifferenceKind, why: str) -> Difference:
    old, new = median(it.quantity.of(it.before)), median(it.quantity.of(it.after))
    change = f", {new / old - 1:+.0%}" if old else ""
    says = f"{it.quantity.name} {it.quantity.words(old)} → {it.quantity.words(new)}{change} ({why})"
    ratio = median(it.high) / median(it.low) if median(it.low) else 100.0
    return Difference(it.after.scenario, it.after.agent, kind, says, min(ratio, 100.0))


def _joined(found: Iterable[Difference]) -> Iterator[Difference]:
    """One line per cell and kind."""
    groups: dict[tuple[str, str, DifferenceKind], list[Difference]] = {}
    for it in found:
        groups.setdefault((it.scenario, it.agent, it.kind), []).append(it)
    for alike in groups.values():
        ordered = sorted(alike, key=lambda it: -it.weight)
        yield replace(ordered[0], says="; ".join(it.says for it in ordered))
