"""The rank test: exact, and rarely wrong where many are made together."""

import random
from itertools import combinations

import pytest

from wedgehog.reports.gate.rank_test import RankTest, can_decide, pooled_test, rank_test, real, repeats_needed


def by_counting(before, after) -> float:
    """The share of all divisions whose ranks are at least as high."""
    values = [*before, *after]
    ranks = [sum(o < v for o in values) + sum(o <= v for o in values) for v in values]
    sums = [sum(ranks[i] for i in chosen) for chosen in combinations(range(len(values)), len(after))]
    return sum(it >= sum(ranks[len(before) :]) for it in sums) / len(sums)


@pytest.mark.parametrize("seed", range(8))
def test_the_probability_is_exact_with_ties_too(seed):
    """It is what counting all divisions gives."""
    draw = random.Random(seed)
    before = [draw.randint(1, 4) for _ in range(draw.randint(1, 6))]
    after = [draw.randint(1, 5) for _ in range(draw.randint(1, 6))]
    assert rank_test(before, after).p == pytest.approx(by_counting(before, after))


def test_several_tests_together_are_as_exact_as_one():
    """The chance of a sum of ranks is that over all divisions of both."""
    first, second = ([1, 3, 2], [4, 2, 5]), ([1, 1], [2, 1])
    assert pooled_test([first]).p == pytest.approx(rank_test(*first).p)
    assert pooled_test([first, second]).p == pytest.approx(by_counting_both(first, second))
    assert pooled_test([([5], [5])] * 2).least_p == 1
    assert pooled_test([([1, 2], [3, 4])] * 40).p == pytest.approx(1e-12)


def by_counting_both(*pairs) -> float:
    """The share of all divisions of both whose ranks are together at least as high."""
    sums, reached = [], 0.0
    for before, after in pairs:
        values = [*before, *after]
        ranks = [sum(o < v for o in values) + sum(o <= v for o in values) for v in values]
        reached += sum(ranks[len(before) :])
        sums.append([sum(ranks[i] for i in it) for it in combinations(range(len(values)), len(after))])
    return sum(a + b >= reached for a in sums[0] for b in sums[1]) / (len(sums[0]) * len(sums[1]))


def test_equal_values_can_decide_nothing():
    """A count that never varies does not make other tests stricter."""
    assert rank_test([5, 5, 5], [5, 5, 5]).least_p == 1
    tests = [rank_test([5, 5, 5], [5, 5, 5])] * 100 + [rank_test(range(8), range(10, 18))]
    assert can_decide(tests, 0.005) == [False] * 100 + [True]
    assert real(tests, 0.005)[-1]


def test_few_repeats_decide_nothing_among_many():
    """Three against three: one of twenty divisions is the most extreme one."""
    assert rank_test([1, 2, 3], [4, 5, 6]).p == pytest.approx(1 / 20)
    assert real([rank_test([1, 2, 3], [4, 5, 6])] * 40, 0.005) == [False] * 40


def test_the_repeats_that_are_needed_are_the_fewest_that_can_decide():
    """120 tests with a rate of 1 %: 8 of each, because there are 12,870 divisions."""
    assert repeats_needed(120, 0.01) == 8
    assert repeats_needed(120, 0.01, before=10) == 7
    assert repeats_needed(120, 0.01, before=1) is None


def test_no_plan_promises_more_repeats_than_the_test_uses():
    """Beside 3 values, 69 would be enough for 280 tests; but the test takes 40 of them."""
    least_p = rank_test([1.0] * 3, [2.0] * 69).least_p
    assert not any(can_decide([RankTest(least_p, least_p)] * 280, 0.005))
    assert repeats_needed(280, 0.005, before=3) is None
    assert repeats_needed(280, 0.005, before=1000) == repeats_needed(280, 0.005, before=40)


def test_noise_alone_is_rarely_called_real():
    """1,000 times 10 tests of numbers that do not differ, at a rate of 5 %: at most 70 times any is called real."""
    draw = random.Random(1)

    def noise() -> list[float]:
        return [draw.lognormvariate(0, 0.3) for _ in range(7)]

    alarms = sum(any(real([rank_test(noise(), noise()) for _ in range(10)], 0.05)) for _ in range(1000))
    assert 10 <= alarms <= 70


def test_of_many_repeats_some_are_used_with_their_shares():
    """1,000 verdicts in order, the failed ones first; the exact test of all of them would not end."""
    before, after = ([1.0] * failed + [0.0] * (1000 - failed) for failed in (100, 500))
    assert rank_test(before, after) == rank_test([1.0] * 4 + [0.0] * 36, [1.0] * 20 + [0.0] * 20)
    assert pooled_test([(before, after)]).p < 0.001
