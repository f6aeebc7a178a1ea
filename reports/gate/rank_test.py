"""Whether numbers of repeats differ by more than chance: an exact rank test, and a limit for many of them together.

The test is Mann-Whitney's, one-sided, by the exact distribution over all ways to divide the pooled values between both
sides, ties included. It assumes nothing of the values but that repeats of the same agent can change places.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

MOST_EXACT = 40
"""The most repeats that the test uses, evenly chosen: the exact distribution of 200 takes half a minute."""
ROUNDED = 1e-12
"""The pooled test tells no smaller chance."""
FRACTION_BITS = 80
_Part = tuple[tuple[int, ...], int]
"""Ranks in order, and how many of them are of the second side."""


@dataclass(frozen=True, slots=True)
class RankTest:
    """The result of one test."""

    p: float
    """The chance of ranks at least as high, if both sides are alike."""
    least_p: float
    """The smallest `p` that these values allow, however they are divided. Equal values allow only 1."""


def rank_test(before: Sequence[float], after: Sequence[float]) -> RankTest:
    """Test whether `after` is higher than `before`; neither may be empty."""
    before, after = _some(before), _some(after)
    ranks = _doubled_ranks([*before, *after])
    ways, every = _ways(tuple(sorted(ranks)), len(after)), math.comb(len(ranks), len(after))
    return RankTest(sum(ways[sum(ranks[len(before) :]) :]) / every, ways[-1] / every)


def pooled_test(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> RankTest:
    """Test whether the second sides of all pairs together are higher: the ranks within each pair are added up.

    The distribution of the sum is exact too, but for a rounding far below `ROUNDED`.
    """
    parts: list[_Part] = []
    reached, least_p = 0, 1.0
    for before, after in ((_some(low), _some(high)) for low, high in pairs):
        ranks = _doubled_ranks([*before, *after])
        parts.append((tuple(sorted(ranks)), len(after)))
        reached += sum(ranks[len(before) :]) - _least(*parts[-1])
        least_p *= _chances(*parts[-1])[-1] / (1 << FRACTION_BITS)
    p = sum(_of_all(tuple(sorted(parts)))[reached:]) / (1 << FRACTION_BITS)
    return RankTest(min(1.0, max(least_p, ROUNDED, p)), max(least_p, ROUNDED))


def _some(values: Sequence[float]) -> Sequence[float]:
    """All values, or if they are many some of them, evenly chosen: of verdicts in order, with their shares."""
    number = len(values)
    return values if number <= MOST_EXACT else [values[at * number // MOST_EXACT] for at in range(MOST_EXACT)]


@lru_cache(maxsize=512)
def _chances(ranks: tuple[int, ...], chosen: int) -> list[int]:
    """The chance of each sum of `chosen` of these ranks, from the least sum on, in units of `2 ** -FRACTION_BITS`.

    The last is not 0.
    """
    every = math.comb(len(ranks), chosen)
    return [(ways << FRACTION_BITS) // every for ways in _ways(ranks, chosen)[_least(ranks, chosen) :]]


def _least(ranks: tuple[int, ...], chosen: int) -> int:
    """The least sum of `chosen` of these ranks, which are in order."""
    return sum(ranks[:chosen])


@lru_cache(maxsize=16)
def _of_all(parts: tuple[_Part, ...]) -> list[int]:
    """The chance of each sum of all parts, from the least on.

    Neighbours are joined, so that long ones are joined few times. The result is kept: the test of the other side, if it
    has as many repeats, needs the same.
    """
    chances = [_chances(*part) for part in parts]
    while len(chances) > 1:
        pairs = (chances[at : at + 2] for at in range(0, len(chances), 2))
        chances = [_of_both(*pair) if len(pair) > 1 else pair[0] for pair in pairs]
    return chances[0]


def _of_both(first: list[int], second: list[int]) -> list[int]:
    """The chance of each sum of two parts: the product of both as whole numbers, whose digits are the chances."""
    width = FRACTION_BITS // 4 + 1
    return [digit >> FRACTION_BITS for digit in _digits(_number(first, width) * _number(second, width), width)]


def _number(digits: Iterable[int], width: int) -> int:
    """The number with these digits of `width` bytes each, the lowest first."""
    return int.from_bytes(b"".join(digit.to_bytes(width, "little") for digit in digits), "little")


def _digits(number: int, width: int) -> list[int]:
    """The digits of a number, of `width` bytes each, the lowest first; the last is not 0."""
    text = number.to_bytes((number.bit_length() + 7) // 8, "little")
    return [int.from_bytes(text[at : at + width], "little") for at in range(0, len(text), width)]


def real(tests: Sequence[RankTest], rate: float) -> list[bool]:
    """Which tests show a real difference, so that with probability `1 - rate` none is called real by chance.

    The correction is Holm's, among the tests that can decide (Tarone): one whose `least_p` is too large never alarms.
    """
    able = _able(tests, rate)
    found = [False] * len(tests)
    for place, index in enumerate(sorted(able, key=lambda it: tests[it].p)):
        if tests[index].p > rate / (len(able) - place):
            break
        found[index] = True
    return found


def can_decide(tests: Sequence[RankTest], rate: float) -> list[bool]:
    """For each test, whether any division of its values would be called real."""
    able = set(_able(tests, rate))
    return [index in able for index in range(len(tests))]


def repeats_needed(tests: int, rate: float, before: int | None = None) -> int | None:
    """The repeats of both sides (or beside `before` of one side) with which a test among so many can decide.

    None: no number is enough. The test uses `MOST_EXACT` values of a side at most, so more repeats add nothing.
    """
    for repeats in range(1, MOST_EXACT + 1):
        other = repeats if before is None else min(before, MOST_EXACT)
        if math.comb(repeats + other, repeats) >= max(tests, 1) / rate:
            return repeats
    return None


def _able(tests: Sequence[RankTest], rate: float) -> list[int]:
    """The tests that can decide: as many as the limit for so many tests lets through."""
    for count in range(1, len(tests) + 1):
        able = [index for index, test in enumerate(tests) if test.least_p <= rate / count]
        if len(able) <= count:
            return able
    return []


def _doubled_ranks(values: Sequence[float]) -> list[int]:
    """Twice the rank of each value; equal values share the mean of their ranks."""
    ordered = sorted(values)
    return [bisect_left(ordered, value) + bisect_right(ordered, value) + 1 for value in values]


@lru_cache(maxsize=512)
def _ways(ranks: tuple[int, ...], chosen: int) -> list[int]:
    """By sum: in how many ways `chosen` of these ranks have that sum; the last is not 0.

    The ways of all sums are the digits of one number, so one shift and one addition count a rank into all of them.
    """
    width = len(ranks) // 8 + 1
    by_size = [1, *[0] * chosen]
    for rank in ranks:
        for size in range(chosen, 0, -1):
            by_size[size] += by_size[size - 1] << 8 * width * rank
    return _digits(by_size[chosen], width)
