"""Where repeats are too few for the test, a margin decides; it is wider for an agent whose numbers vary."""

from collections.abc import Mapping, Sequence

import pytest

from wedgehog.reports.gate.difference import Difference
from wedgehog.reports.gate.differences import differences
from wedgehog.reports.played_cells import PlayedCell

NAMES = ("crane", "eagle", "heron", "otter")


def compared(before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]]) -> dict[str, Difference]:
    """What is told of each scenario, by the paid calls of three passed repeats on both sides."""
    sides = ({(name, "mine"): _cell(name, calls) for name, calls in side.items()} for side in (before, after))
    return {it.scenario: it for it in differences(*sides)}


def _cell(name: str, calls: Sequence[float]) -> PlayedCell:
    return PlayedCell(name, "mine", {"passed": len(calls)}, paid_calls=tuple(calls))


def test_a_count_that_never_varies_and_doubles_is_worse():
    found = compared(dict.fromkeys(NAMES, (2, 2, 2)), dict.fromkeys(NAMES, (2, 2, 2)) | {"otter": (4, 4, 4)})
    assert (found["otter"].kind, found["otter"].says) == ("worse", "paid calls 2 → 4, +100% (beyond the margin)")


def test_a_count_that_varies_in_most_scenarios_only_warns_where_few_repeats_are_equal_by_chance():
    """In virtual time, 24 campaigns of an agent that asks 2 to 9 times: 61 of 552 pairs gave an alarm before."""
    before = dict(zip(NAMES, ((2, 5, 3), (2, 4, 6), (3, 2, 4), (2, 2, 2)), strict=True))
    after = dict(zip(NAMES, ((4, 2, 3), (5, 2, 2), (2, 6, 3), (5, 5, 5)), strict=True))
    found = compared(before, after)
    assert found["otter"].kind == "maybe"
    assert found["otter"].says.startswith("paid calls 2 → 5, +150% (3 and 3 repeats cannot decide")


def test_one_scenario_that_varies_hides_nothing_of_the_others():
    before = dict.fromkeys(NAMES, (2, 2, 2)) | {"crane": (1, 9, 4)}
    after = dict.fromkeys(NAMES, (2, 2, 2)) | {"crane": (8, 2, 1), "otter": (4, 4, 4)}
    assert compared(before, after)["otter"].kind == "worse"


def test_a_difference_within_what_repeats_of_one_side_differ_only_warns():
    """Once the gap is 3, and repeats differ by 2 on either side; then it is 4, and they differ by 1 and 2."""
    assert compared({"otter": (2, 3, 4)}, {"otter": (7, 8, 9)})["otter"].kind == "maybe"
    assert compared({"otter": (2, 2, 3)}, {"otter": (7, 8, 9)})["otter"].kind == "worse"


@pytest.mark.parametrize(("calls", "kind"), [(8, "maybe"), (12, "worse")])
@pytest.mark.parametrize("repeats", [1, 2])
def test_one_or_two_repeats_only_warn_below_a_wide_margin(repeats: int, calls: int, kind: str):
    """One repeat cannot show that a count varies: of an unchanged agent that asks 2 to 9 times, most pairs alarmed."""
    assert compared({"otter": (2,) * repeats}, {"otter": (calls,) * repeats})["otter"].kind == kind
