"""What the recovery message costs is a number that the gate compares."""

import pytest

from wedgehog.harness.record.history import History
from wedgehog.reports.gate.baseline import Baseline, read_baseline, write_baseline
from wedgehog.reports.gate.gate import GateResult, gate, gate_lines
from wedgehog.reports.history_numbers import numbers_of

from .conftest import Campaign, HandClock, Telling, judgement
from .test_gate import baseline_of


def recovers(calls: int):
    """One message with one call, and a recovery message with so many, which all take 0.1 s."""

    def tell(telling: Telling) -> None:
        telling.start("any", "mine")
        for turn, kind, number in ((1, "user", 1), (2, "recovery", calls)):
            telling.message(turn, kind=kind)
            for _ in range(number):
                call = telling.request(turn)
                telling.accept(call)
                telling.later(0.1 / number).whole(call, "Three files.")
            telling.end(turn, "Three files.")

    return tell


def campaign_of(folder, *calls: int) -> Campaign:
    """One repeat for each of these numbers; 0: no recovery message was sent."""
    campaign = Campaign(folder)
    for repeat, number in enumerate(calls, 1):
        campaign.run(judgement("s", "mine", repeat=repeat), recovers(number) if number else alone)
    return campaign


def alone(telling: Telling) -> None:
    """One message, and no recovery message."""
    telling.start("any", "mine")
    telling.message(1)
    call = telling.request(1)
    telling.accept(call)
    telling.later(1).whole(call, "Three files.")
    telling.end(1, "Three files.")


def kept(campaign: Campaign, tmp_path) -> Baseline:
    """Written to a file and read again."""
    write_baseline(baseline_of(campaign), tmp_path / "kept.yaml")
    return read_baseline(tmp_path / "kept.yaml")


def gated(tmp_path, before: tuple[int, ...], after: tuple[int, ...]) -> GateResult:
    sides = campaign_of(tmp_path / "a", *before), campaign_of(tmp_path / "b", *after)
    return gate(sides[1].folder, kept(sides[0], tmp_path))


@pytest.mark.parametrize(("repeats", "why"), [(10, "p = 5.4e-06"), (3, "beyond the margin")])
def test_a_recovery_that_costs_three_calls_where_it_cost_one_is_worse(tmp_path, repeats, why):
    result = gated(tmp_path, (1,) * repeats, (3,) * repeats)
    assert result.exit_code == 1
    (line,) = [line for line in gate_lines(result) if line.startswith("✗")]
    assert f"recovery calls 1 → 3, +200% ({why})" in line
    assert f"simulated recovery cost $0.025 → $0.074, +200% ({why})" in line


def test_a_recovery_that_costs_fewer_calls_is_better(tmp_path):
    assert [it.kind for it in gated(tmp_path, (3,) * 10, (1,) * 10).found] == ["better"]


@pytest.mark.parametrize("after", [(1, 1, 1), (1, 1, 2), (1, 0, 1)])
def test_a_recovery_that_hardly_differs_has_no_line_that_fails(tmp_path, after):
    """One repeat with a second call, or without a recovery message, shows nothing."""
    assert gated(tmp_path, (1, 1, 1), after).exit_code == 0


def test_repeats_without_a_recovery_message_take_no_number_from_the_others(tmp_path):
    campaign = campaign_of(tmp_path / "a", 2, 0, 2)
    assert kept(campaign, tmp_path).played["s", "mine"].recovery_calls == (2, 2)
    assert gated(tmp_path / "x", (2, 0, 2), (9, 9, 9)).exit_code == 1


def test_where_results_vary_a_repeat_without_a_recovery_message_hides_none_of_the_others(tmp_path):
    """In the file, too: a null says which repeats have none."""

    def varies(folder, number: int) -> Campaign:
        campaign = Campaign(folder)
        for repeat in range(1, 11):
            judged = {"verdict": "fail", "violated": ("turn_answered",)} if repeat == 4 else {}
            told = alone if repeat in (2, 4) else recovers(number)
            campaign.run(judgement("s", "mine", repeat=repeat, **judged), told)
        return campaign

    before, after = varies(tmp_path / "a", 1), varies(tmp_path / "b", 5)
    baseline = kept(before, tmp_path)
    assert "recovery_calls: [1, 1, 1, 1, 1, 1, 1, 1, null, null]" in (tmp_path / "kept.yaml").read_text()
    (found,) = gate(after.folder, baseline).found
    assert (found.kind, found.says.partition(" (")[0]) == ("worse", "recovery calls 1 → 5, +400%")


def test_a_baseline_without_the_cost_of_recovery_is_taken_with_a_note(tmp_path):
    """As one that was written before it was kept."""
    before, after = campaign_of(tmp_path / "a", 1, 1, 1), campaign_of(tmp_path / "b", 9, 9, 9)
    kept(before, tmp_path)
    path = tmp_path / "kept.yaml"
    assert "recovery_calls: 1, recovery_usd: 0.0246" in path.read_text()
    path.write_text(path.read_text().replace(", recovery_calls: 1, recovery_usd: 0.0246", ""))
    result = gate(after.folder, read_baseline(path))
    assert (result.exit_code, len(result.notes)) == (0, 1)
    assert "calls and cost of recovery messages are not compared; `wedgehog baseline" in result.notes[0]


def test_calls_of_the_scenario_are_no_part_of_it():
    clock = HandClock()
    telling = Telling(History(clock), clock)
    recovers(3)(telling)
    numbers = numbers_of(telling.history)
    assert (numbers.columns["paid_calls"], numbers.recovery_calls) == (1, 3)
