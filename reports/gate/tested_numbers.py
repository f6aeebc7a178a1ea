"""The numbers of both sides, each with its test: of every cell, and of all cells of an agent together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from wedgehog.reports.gate.alike_repeats import AlikeRepeats
from wedgehog.reports.gate.quantities import Quantity
from wedgehog.reports.gate.rank_test import RankTest, pooled_test, rank_test
from wedgehog.reports.played_cells import Key, PlayedCell

TOGETHER = "all scenarios together"
"""The name of the cell that stands for all cells of an agent."""

TOO_BUSY = 0.75
"""From this share of the time on, in which the harness waits for a processor, the times are those of the machine."""

FEW = 3
"""Below so many repeats of a side, the margins are wider."""


@dataclass(frozen=True)
class TestedNumber:
    """A quantity of a cell, or of all cells of an agent, with the test whether it is higher on one side."""

    scenario: str
    agent: str
    quantity: Quantity
    old: Sequence[float]
    new: Sequence[float]
    least: Sequence[float]
    """The higher side without what is not the agent's."""
    waits: Sequence[float]
    """The waits for a processor in the values of the higher side."""
    test: RankTest
    better: bool
    of: str = ""
    """`failed repeats`, where passed ones are compared too."""
    doubt: str = ""
    """Why a higher number may be no fault of the agent."""
    failed: bool = False
    """Whether it is of failed repeats only."""
    varies: float = 1.0
    """How many times the lowest repeat the highest one is, in most scenarios of the agent."""

    @property
    def low(self) -> Sequence[float]:
        """The other side."""
        return self.new if self.better else self.old

    @property
    def high(self) -> Sequence[float]:
        """The side that is tested for being higher."""
        return self.old if self.better else self.new

    @property
    def name(self) -> str:
        """`paid calls`, or `paid calls of failed repeats`."""
        return f"{self.quantity.name} of {self.of}" if self.of else self.quantity.name

    @property
    def is_aside(self) -> bool:
        """Whether it is left out where all cells are added up."""
        return bool(self.of or self.doubt)

    @property
    def what(self) -> Key:
        """Its agent and quantity."""
        return self.agent, self.quantity.name

    @property
    def is_pool(self) -> bool:
        """Whether it is of all cells together, and each cell has a test of its own too."""
        return self.scenario == TOGETHER and not self.quantity.together

    @property
    def over_floor(self) -> bool:
        """Whether it grew by the floor also without what is not the agent's."""
        return self.is_above_floor(median(self.least))

    def is_above_floor(self, high: float) -> bool:
        """Whether this value is above the other side by the floor."""
        low = median(self.low)
        return high - low >= self.quantity.floor_above(low) and high > low

    @property
    def has_margin(self) -> bool:
        """Whether a wide margin decides where the test cannot.

        All cells together have only the test. So have failed repeats where passed ones are compared too, and fewer than
        three of them: how often they ask varies by chance. What is in doubt only warns.
        """
        few = min(len(self.low), len(self.high)) < FEW
        return bool(self.doubt) or not (self.is_pool or self.of or (self.failed and few))

    @property
    def beyond_margin(self) -> bool:
        """Whether every repeat is above every repeat of the other side by the margin, and by more than repeats vary."""
        low, high, it = max(self.low), min(self.least), self.quantity
        few = min(len(self.low), len(self.high)) < FEW
        times, margin = (it.few_times, it.few_margin) if few else (it.times, it.margin)
        if high < times * low or high - low < margin:
            return False
        return high > self.varies * low and high - low >= _spread(self.low) + _spread(self.least)


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)


def tested_numbers(both: Iterable[AlikeRepeats], quantities: Sequence[Quantity], *, better: bool) -> list[TestedNumber]:
    """The tests whether the new side is higher (`better`: lower), those of all cells of an agent at the end."""
    every = _with_variation([it for alike in both for it in _tested(alike, quantities, better=better)])
    return [*(it for it in every if not it.quantity.together), *_together(every)]


def _tested(alike: AlikeRepeats, quantities: Iterable[Quantity], *, better: bool) -> Iterator[TestedNumber]:
    before, after = alike.before, alike.after
    first, second = (after, before) if better else (before, after)
    for quantity in quantities:
        low, high = quantity.of(first), quantity.of(second)
        if low and high:
            old, new, least = quantity.of(before), quantity.of(after), quantity.least(second)
            test = _test(quantity, low, high)
            waits = quantity.waits(second) or [0.0] * len(high)
            doubt = alike.doubt or (too_busy(before, after) if quantity.slowed else "")
            values = quantity, old, new, least, waits, test, better
            yield TestedNumber(after.scenario, after.agent, *values, alike.of, doubt, alike.failed)


def too_busy(*sides: PlayedCell) -> str:
    """Why no time of these sides can be trusted; empty if the machines had time."""
    busy = max(side.busy or 0.0 for side in sides)
    return f"the harness waited for a processor in {busy:.0%} of that time" if busy >= TOO_BUSY else ""


def _test(quantity: Quantity, low: Sequence[float], high: Sequence[float]) -> RankTest:
    """The test; it cannot decide if no division of these values between both sides is over the floor."""
    test, values = rank_test(low, high), (*low, *high)
    least = min(values)
    return test if max(values) - least >= quantity.floor_above(least) else replace(test, least_p=1.0)


def _with_variation(tested: Sequence[TestedNumber]) -> list[TestedNumber]:
    """Each number with how much it varies between repeats in most scenarios of its agent.

    Few repeats can be equal by chance; those of other scenarios show then that the number varies.
    """
    ratios: dict[Key, list[float]] = {}
    for it in tested:
        ratios.setdefault(it.what, []).extend(_ratio(side) for side in (it.old, it.new))
    return [replace(it, varies=_of_most(ratios[it.what])) for it in tested]


def _ratio(values: Sequence[float]) -> float:
    """How many times the lowest value the highest one is."""
    return max(values) / min(values) if min(values) > 0 else 1.0


def _of_most(ratios: Sequence[float]) -> float:
    """The third largest: one scenario that varies says nothing about the others, and it has two sides."""
    return sorted(ratios)[-3] if len(ratios) >= 3 else 1.0


def _together(tested: Iterable[TestedNumber]) -> Iterator[TestedNumber]:
    """Each quantity of all cells of an agent: the sum of their medians, or the mean of each repeat."""
    groups: dict[tuple[str, str], list[TestedNumber]] = {}
    for it in (it for it in tested if it.quantity.pooled and not it.is_aside):
        groups.setdefault((it.agent, it.quantity.name), []).append(it)
    for alike in groups.values():
        if len(alike) > 1:
            yield _pool(alike)
        elif alike[0].quantity.together:
            yield alike[0]


def _pool(alike: Sequence[TestedNumber]) -> TestedNumber:
    quantity, test = alike[0].quantity, pooled_test([(it.low, it.high) for it in alike])
    fold = _means if quantity.together else _sums
    every = zip(*((it.old, it.new, it.least, it.waits) for it in alike), strict=True)
    old, new, least, waits = (fold(sides) for sides in every)
    return TestedNumber(TOGETHER, alike[0].agent, quantity, old, new, least, waits, test, alike[0].better)


def _sums(sides: Iterable[Sequence[float]]) -> Sequence[float]:
    return (sum(map(median, sides)),)


def _means(sides: Iterable[Sequence[float]]) -> Sequence[float]:
    return tuple(map(fmean, zip(*sides, strict=False)))
