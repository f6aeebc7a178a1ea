"""Which numbers are worse (or better) beyond chance, or beyond a margin where the repeats are too few for the test."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from wedgehog.reports.gate.difference import Difference, DifferenceKind
from wedgehog.reports.gate.rank_test import can_decide, real, repeats_needed
from wedgehog.reports.gate.tested_numbers import TestedNumber
from wedgehog.reports.words import many

SHOWN_TIMES = 100
"""A larger growth is shown without its percentage: it says only that the number was near zero."""
FALSE_ALARMS = 0.005
"""The share of campaigns of an unchanged agent in which the tests of numbers may call any of them worse."""


@dataclass(frozen=True)
class _Decision:
    """A number, and what its test shows among all tests."""

    number: TestedNumber
    is_real: bool
    can_decide: bool
    needed: int | None
    """With this many repeats of both sides each test can decide."""

    @property
    def grew_by_waits(self) -> bool:
        """Whether it is above the floor only with its waits for a processor."""
        it = self.number
        grew = self.is_real or (not self.can_decide and min(it.high) > max(it.low))
        return not it.over_floor and not it.better and grew and it.is_above_floor(median(it.high))

    @property
    def is_sure(self) -> bool:
        """Whether it differs by the test, or by the margin."""
        it = self.number
        by_margin = not self.can_decide and it.has_margin and it.beyond_margin
        return it.over_floor and (self.is_real or by_margin)

    @property
    def has_too_few(self) -> bool:
        """Whether it is higher, and the repeats can't decide; of failed repeats beside passed ones, by the margin."""
        it = self.number
        if it.of and not it.beyond_margin:
            return False
        return it.over_floor and not (self.can_decide or it.is_pool or it.better) and it.test.least_p < 1

    def difference(self) -> Difference | None:
        """What it shows, if anything."""
        if self.is_sure:
            return self._sure()
        if self.number.doubt:
            return None
        if self.grew_by_waits:
            return _difference(self.number, "maybe", _of_waits(self.number))
        return _difference(self.number, "maybe", _too_few(self.number, self.needed)) if self.has_too_few else None

    def _sure(self) -> Difference | None:
        it, why = self.number, f"p = {self.number.test.p:.2g}" if self.is_real else "beyond the margin"
        if it.doubt:
            return None if it.better else _difference(it, "maybe", f"{why}, but {it.doubt}")
        return _difference(it, "better" if it.better else "worse", why)


def number_differences(tested: Sequence[TestedNumber], rate: float) -> Iterator[Difference]:
    """What is worse (or better) in one cell, and where no cell shows it, in all cells of an agent together."""
    decisions = _decisions(tested, rate)
    cells = [it for it in decisions if not it.number.is_pool and not it.number.is_aside]
    named = {it.number.what for it in cells if it.is_sure}
    waited = {it.number.what for it in cells if it.grew_by_waits}
    for it in decisions:
        told = named if it.is_sure else named | waited
        found = None if it.number.is_pool and it.number.what in told else it.difference()
        if found is not None:
            yield found


def _decisions(tested: Sequence[TestedNumber], rate: float) -> list[_Decision]:
    tests = [it.test for it in tested]
    needed = repeats_needed(len(tests), rate)
    both = zip(tested, real(tests, rate), can_decide(tests, rate), strict=True)
    return [_Decision(it, is_real, decides, needed) for it, is_real, decides in both]


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
    change = f", {new / old - 1:+.0%}" if old and new < SHOWN_TIMES * old else ""
    says = f"{it.name} {it.quantity.words(old)} → {it.quantity.words(new)}{change} ({why})"
    ratio = median(it.high) / median(it.low) if median(it.low) else 100.0
    return Difference(it.scenario, it.agent, kind, says, min(ratio, 100.0))
