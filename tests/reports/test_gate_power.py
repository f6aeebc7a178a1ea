"""How often the gate is wrong, and what it finds, with the turns of really played campaigns (benchmarks/gate.py)."""

import importlib.util
import random
from dataclasses import replace
from math import comb
from pathlib import Path

import pytest

from wedgehog.reports.gate.differences import differences, unchanged
from wedgehog.reports.gate.tested_numbers import TOGETHER
from wedgehog.reports.played_cells import PlayedCell

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gate.py"


@pytest.fixture(scope="module")
def gate():
    """The benchmark as a module."""
    spec = importlib.util.spec_from_file_location("gate_benchmark", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.CELLS = 6
    return module


def test_an_unchanged_agent_is_hardly_ever_called_worse(gate):
    """200 pairs of campaigns drawn from played ones: at most 1 alarm."""
    pool, draw = gate.pooled(gate.kept_campaigns()), random.Random(4)
    sides = [gate.resampled(pool, draw, 10) for _ in range(400)]
    alarms, pairs = gate.false_alarms(zip(sides[::2], sides[1::2], strict=True))
    assert pairs == 200
    assert alarms <= 1


def played_cell(gate) -> PlayedCell:
    """One of the played scenarios, whose numbers are to be replaced."""
    return next(iter(gate.pooled(gate.kept_campaigns()).values()))


@pytest.mark.parametrize("turn_s", [1.0, 2.0])
def test_a_turn_that_takes_30_percent_longer_is_found(gate, turn_s):
    """In 19 of 20 pairs at least, with ten repeats that vary by 5 % and do not wait, among 6 scenarios."""
    gate.SLOWER_PAIRS = 20
    pool = gate.alike(played_cell(gate), 0.05, random.Random(5), turn_s)
    assert gate.found_slower(pool, random.Random(6), 10) >= 19


def side(turn_s: float, wait_s: float = 0.0) -> dict[tuple[str, str], PlayedCell]:
    """Ten repeats that hardly vary."""
    times = tuple(turn_s + number / 1000 for number in range(10))
    cell = PlayedCell("s", "mine", {"passed": 10}, turn_s=times)
    return {("s", "mine"): replace(cell, turn_least_s=tuple(it - wait_s for it in times))}


@pytest.mark.parametrize(
    ("before", "after", "wait_s", "kinds"),
    [
        (2.0, 2.6, 0.0, ["worse"]),
        (2.0, 2.6, 0.1, ["worse"]),
        (2.0, 2.6, 0.25, ["maybe"]),
        (2.0, 2.15, 0.0, []),
        (0.3, 0.45, 0.0, []),
        (2.6, 2.0, 0.0, ["better"]),
    ],
)
def test_only_a_difference_over_the_floor_and_beyond_the_waits_counts(before, after, wait_s, kinds):
    """Less than 10 % or 0.2 s, or explained by waits for a processor, is not worse, however sure the test is."""
    assert [it.kind for it in differences(side(before), side(after, wait_s))] == kinds


def test_a_time_that_grew_by_waits_for_a_processor_is_a_warning():
    """An agent that keeps the processors busy with its own children waits for them too."""
    cut = {key: replace(cell, turn_s=(0.03, 0.031, 0.032)) for key, cell in side(2.0).items()}
    grown = {"turn_s": (4.2, 4.21, 4.22), "turn_least_s": (0.1, 0.11, 0.12)}
    (found,) = differences(
        {key: replace(cell, turn_least_s=()) for key, cell in cut.items()},
        {key: replace(cell, **grown) for key, cell in cut.items()},
    )
    assert (found.kind, found.says) == (
        "maybe",
        "longest turn 31 ms → 4.21 s (but 4.10 s of it waited for a processor: "
        "play it on a quiet machine, or the agent itself keeps the processors busy)",
    )


@pytest.mark.parametrize(("busy", "kinds"), [(None, ["worse"]), (0.7, ["worse"]), (0.8, ["maybe"])])
@pytest.mark.parametrize("slower_is_busy", [True, False])
def test_times_of_a_machine_that_is_too_busy_only_warn(busy, kinds, slower_is_busy):
    """The harness waits for a processor most of the time, on either side: how long a turn takes is chance."""
    before, after = side(2.0), side(2.6)
    sides = before, after
    loaded = {key: replace(cell, busy=busy) for key, cell in sides[slower_is_busy].items()}
    found = differences(*((before, loaded) if slower_is_busy else (loaded, after)))
    assert [it.kind for it in found] == kinds
    if kinds == ["maybe"]:
        assert "but the harness waited for a processor in 80% of that time" in found[0].says


def test_calls_count_on_a_busy_machine_too():
    """How often an agent asks is no matter of processors."""
    cells = (PlayedCell("s", "mine", {"passed": 3}, paid_calls=(calls,) * 3, busy=0.9) for calls in (2.0, 9.0))
    assert [it.kind for it in differences(*({("s", "mine"): cell} for cell in cells))] == ["worse"]


def three_of_each(factor: float) -> dict[tuple[str, str], PlayedCell]:
    """Twelve scenarios with three repeats."""
    times = tuple(factor * (2.0 + number / 100) for number in range(3))
    return {(name, "mine"): PlayedCell(name, "mine", {"passed": 3}, turn_s=times) for name in "abcdefghijkl"}


def test_an_agent_that_is_slower_everywhere_is_found_with_three_repeats():
    """No scenario alone can show it; all of them together do, in one line."""
    found = differences(three_of_each(1.0), three_of_each(1.3))
    assert [it.kind for it in found] == ["worse"] + ["maybe"] * 12
    assert found[0].where == f"{TOGETHER}, mine"
    assert found[0].says.startswith("longest turn 24.1 s → 31.4 s, +30% (p = ")
    assert unchanged([("a", "mine"), ("a", "other")], found[:1]) == {("a", "other")}
    assert [it.kind for it in differences(three_of_each(1.3), three_of_each(1.0))] == ["better"]
    assert not differences(three_of_each(1.0), three_of_each(1.0))


@pytest.mark.parametrize(("later_s", "says"), [(0.4, ["start 0.51 s → 0.91 s, +78% (p = 1e-12)"]), (0.1, [])])
def test_the_starts_of_all_scenarios_are_one_number(later_s, says):
    """It hardly depends on the scenario; no scenario has a line of its own, and the floor holds for their mean."""

    def starting(later_s: float) -> dict[tuple[str, str], PlayedCell]:
        times = tuple(0.5 + number / 100 + later_s for number in range(3))
        return {key: replace(cell, start_s=times) for key, cell in three_of_each(1.0).items()}

    found = differences(starting(0.0), starting(later_s))
    assert [it.says for it in found] == says


def test_what_one_scenario_shows_is_not_told_of_all():
    """One line says it."""
    after = three_of_each(1.0)
    after["a", "mine"] = replace(after["a", "mine"], turn_s=(9.0, 9.1, 9.2))
    assert [it.scenario for it in differences(three_of_each(1.0), after) if it.kind == "worse"] == ["a"]


def test_few_repeats_say_that_they_cannot_decide():
    """Three of each among one cell's numbers: a warning that names how many can."""
    cut = {key: replace(cell, turn_s=cell.turn_s[:3], turn_least_s=()) for key, cell in side(2.0).items()}
    now = {key: replace(cell, turn_s=cell.turn_s[:3], turn_least_s=()) for key, cell in side(2.6).items()}
    (found,) = differences(cut, now)
    assert found.kind == "maybe"
    assert found.says == "longest turn 2.00 s → 2.60 s, +30% (3 and 3 repeats cannot decide; 5 of each can)"


def failing(failed: int, repeats: int = 10) -> dict[tuple[str, str], PlayedCell]:
    """So many of the repeats failed."""
    results = {"passed": repeats - failed, "failed": failed}
    return {("s", "mine"): PlayedCell("s", "mine", {name: number for name, number in results.items() if number})}


@pytest.mark.parametrize(
    ("before", "after", "kind", "says"),
    [
        (failing(1), failing(7), "worse", "failed 1 of 10 → 7 of 10 (p = 0.0099)"),
        (failing(1), failing(8), "worse", "failed 1 of 10 → 8 of 10 (p = 0.0027)"),
        (failing(1), failing(6), "maybe", "failed 1 of 10 → 6 of 10 (p = 0.029; at most 0.01 decides)"),
        (failing(1, 3), failing(3, 3), "maybe", "failed 1 of 3 → 3 of 3 (p = 0.2; at most 0.01 decides)"),
        (failing(7), failing(1), "better", "failed 7 of 10 → 1 of 10 (p = 0.0099)"),
        (failing(6), failing(0), "better", "passed 4, failed 6 of 10 → passed 10 of 10"),
        (failing(1), failing(0), "maybe", "failed 1 of 10 → 0 of 10 (p = 0.5; at most 0.01 decides)"),
        (failing(2, 3), failing(0, 3), "maybe", "failed 2 of 3 → 0 of 3 (p = 0.2; at most 0.01 decides)"),
        (failing(3, 3), failing(0, 3), "better", "failed 3 of 3 → passed 3 of 3"),
    ],
)
def test_a_scenario_that_fails_more_often_has_a_line(before, after, kind, says):
    """Beyond chance it is worse; each smaller rise, and a failure of some repeats that stayed away, is a warning."""
    assert [(it.kind, it.says) for it in differences(before, after)] == [(kind, says)]


def test_a_flaky_scenario_is_hardly_ever_called_worse():
    """The rates that docs/gate.md gives, summed up exactly: in percent of pairs of campaigns of ten repeats."""
    worse = {
        (a, b)
        for a in range(1, 11)
        for b in range(a, 11)
        if any(it.kind == "worse" for it in differences(failing(a), failing(b)))
    }

    def chance(failed: int, rate: float) -> float:
        return comb(10, failed) * rate**failed * (1 - rate) ** (10 - failed)

    rates = [100 * sum(chance(a, rate) * chance(b, rate) for a, b in worse) for rate in (0.1, 0.3, 0.5)]
    assert [round(it, 2) for it in rates] == [0.0, 0.14, 0.36]


def test_equal_repeats_that_cannot_decide_are_named_as_the_reason():
    """Ten of each would be enough if they differed, so no number of repeats is promised."""
    calls = {
        when: {("s", "mine"): PlayedCell("s", "mine", {"passed": 10}, paid_calls=(2.0,) * low + (3.0,) * (10 - low))}
        for when, low in (("before", 10), ("after", 4))
    }
    (found,) = differences(calls["before"], calls["after"])
    assert found.says == "paid calls 2 → 3, +50% (10 and 10 repeats cannot decide: too many of them are equal)"


def test_numbers_that_stay_below_the_floor_do_not_make_the_limit_stricter():
    """However their values are divided, they could not be called worse; so eight repeats of 100 turns decide."""

    def cells(turn_s: float) -> dict[tuple[str, str], PlayedCell]:
        short, long = (tuple(s + number / 1000 for number in range(8)) for s in (0.05, 2.0))
        alike = PlayedCell("s", "mine", {"passed": 8}, turn_s=long, other_turns_s=short)
        made = {(f"s{number}", "mine"): replace(alike, scenario=f"s{number}") for number in range(100)}
        slow = tuple(turn_s + number / 1000 for number in range(8))
        return made | {("s0", "mine"): replace(alike, scenario="s0", turn_s=slow)}

    found = differences(cells(2.0), cells(2.6), 0.01)
    assert [(it.scenario, it.kind) for it in found] == [("s0", "worse")]
