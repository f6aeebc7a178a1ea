"""Whether numbers of repeats differ by more than chance: an exact rank test, and a limit for many of them together.

The test is Mann-Whitney's, one-sided, by the exact distribution over all ways to divide the pooled values between both
sides, ties included. It assumes nothing of the values but that repeats of the same agent can change places.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_REPEATS = 1000
ROUNDED = 1e-12
"""A smaller chance cannot be told from the rounding of a Fourier transform."""


@dataclass(frozen=True, slots=True)
class RankTest:
    """The result of one test."""

    p: float
    """The chance of ranks at least as high, if both sides are alike."""
    least_p: float
    """The smallest `p` that these values allow, however they are divided. Equal values allow only 1."""


def rank_test(before: Sequence[float], after: Sequence[float]) -> RankTest:
    """Test whether `after` is higher than `before`; neither may be empty."""
    ranks = _doubled_ranks([*before, *after])
    ways = _ways(tuple(sorted(ranks)), len(after))
    reached, highest = sum(ranks[len(before) :]), int(np.flatnonzero(ways)[-1])
    return RankTest(float(ways[reached:].sum() / ways.sum()), float(ways[highest] / ways.sum()))


def pooled_test(pairs: Sequence[tuple[Sequence[float], Sequence[float]]]) -> RankTest:
    """Test whether the second sides of all pairs together are higher: the ranks within each pair are added up.

    The distribution of the sum is exact too, but for the rounding of a Fourier transform.
    """
    parts: Counter[tuple[tuple[int, ...], int]] = Counter()
    reached, least_p = 0, 1.0
    for before, after in pairs:
        ranks = _doubled_ranks([*before, *after])
        parts[tuple(sorted(ranks)), len(after)] += 1
        reached += sum(ranks[len(before) :])
        least_p *= rank_test(before, after).least_p
    shares = _sums(parts)
    return RankTest(min(1.0, max(least_p, ROUNDED, float(shares[reached:].sum()))), max(least_p, ROUNDED))


def _sums(parts: Mapping[tuple[tuple[int, ...], int], int]) -> NDArray[Any]:
    """The chance of each sum of ranks over all parts, of which some are alike."""
    length = sum(number * sum(ranks) for (ranks, _), number in parts.items()) + 1
    product = np.ones(length // 2 + 1, dtype=complex)
    for (ranks, chosen), number in parts.items():
        ways = _ways(ranks, chosen)
        product *= np.fft.rfft(ways / ways.sum(), length) ** number
    found: NDArray[Any] = np.fft.irfft(product, length)
    return found


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

    None: no number is enough, or only an absurd one.
    """
    for repeats in range(1, MOST_REPEATS + 1):
        other = repeats if before is None else before
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
    return [sum(other < value for other in values) + sum(other <= value for other in values) + 1 for value in values]


@lru_cache(maxsize=512)
def _ways(ranks: tuple[int, ...], chosen: int) -> NDArray[Any]:
    """By sum: in how many ways `chosen` of these ranks have that sum."""
    sums: NDArray[Any] = np.zeros((chosen + 1, sum(ranks) + 1))
    sums[0, 0] = 1.0
    for rank in ranks:
        sums[1:, rank:] += sums[:-1, :-rank].copy()
    found: NDArray[Any] = sums[chosen]
    return found
