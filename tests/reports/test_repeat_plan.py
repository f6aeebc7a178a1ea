"""What `--plan` says of turns for which 30 % is less than the floor."""

import pytest

from wedgehog.reports.gate.baseline import Baseline, Floors
from wedgehog.reports.gate.baseline_cell import BaselineCell
from wedgehog.reports.gate.repeat_plan import plan_lines


def last_line(*turns_s: float, floor: float | None = None) -> str:
    """Of the plan for a baseline with scenarios that take so long, with ten repeats that vary by 3.7 %."""
    parts = (1, 1.05, 0.95, 1, 1.05, 1, 0.95, 1, 1.05, 1)
    cells = {
        str(turn_s): {
            "mine": BaselineCell(
                result="passed", repeats=10, paid_calls=1, usd=0, turn_s=[round(turn_s * part, 4) for part in parts]
            )
        }
        for turn_s in turns_s
    }
    baseline = Baseline(world="live", cells=cells, floors=Floors(turn_s=floor))
    return list(plan_lines(baseline, [(name, "mine") for name in cells], 10))[-1]


@pytest.mark.parametrize(
    ("turns_s", "floor", "says"),
    [
        ((0.35,), None, "a turn that takes 30% longer is not found: 30% of each is less than the floor of 0.20 s"),
        ((0.35,), 0.05, "a turn that takes 30% longer is found in 19 of 20 campaigns with 6 repeats of both sides"),
        (
            (0.67,),
            None,
            "a turn that takes 30% longer is found in fewer than 19 of 20 campaigns, even with 30 repeats "
            "of both sides",
        ),
        (
            (0.35, 2.0),
            None,
            "a turn that takes 30% longer is found in 19 of 20 campaigns with 7 repeats of both sides, "
            "but not in 1 of 2 results: 30% of their turns is less than the floor of 0.20 s",
        ),
    ],
)
def test_a_turn_below_the_floor_is_not_promised(turns_s, floor, says):
    """Turns of 0.35 s: 30 % is 0.105 s, less than 0.2 s; a little above it, chance hides half."""
    assert last_line(*turns_s, floor=floor).endswith(says)


def test_a_plan_for_another_world_compares_no_times():
    """As the gate then does: no number of repeats finds a slower turn."""
    cell = BaselineCell(result="passed", repeats=10, paid_calls=1, usd=0, turn_s=[1.0, 1.1] * 5)
    baseline = Baseline(world="sim", cells={"s": {"mine": cell}})
    of_worlds = {world: list(plan_lines(baseline, [("s", "mine")], 10, world)) for world in ("sim", "live")}
    assert of_worlds["live"][-1] == (
        "the baseline is of the world sim, and this campaign of live: times are not compared"
    )
    tests = {world: int(lines[0].partition("without: ")[2].split()[0]) for world, lines in of_worlds.items()}
    assert tests["live"] < tests["sim"] and "times are not compared" not in " ".join(of_worlds["sim"])


def test_a_plan_of_results_without_a_baseline_does_not_promise_that_they_only_warn():
    """A scenario that is new and fails is worse."""
    (line,) = plan_lines(Baseline(), {("s", "mine")}, 3)
    assert line == "none of 1 result is in the baseline: each that passes only warns, and each that fails is worse"
