"""Every turn of a run is in a number that the gate compares: the longest one, and all others together."""

import pytest

from wedgehog.harness.record.events.run import CpuWait, CpuWaitSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.testing.history_builder import HistoryBuilder
from wedgehog.reports.gate.baseline import read_baseline, write_baseline
from wedgehog.reports.gate.gate import GateResult, gate, gate_lines
from wedgehog.reports.history_numbers import numbers_of

from .conftest import Campaign, HandClock, Telling, judgement
from .test_gate import baseline_of


def turns_of(first_s: float, second_s: float, recovery_s: float, harness_s: float = 0.0):
    """Two answered messages and the recovery message, which take so long; the harness waits so long in each."""

    def tell(telling: Telling) -> None:
        telling.start("any", "mine")
        for number, (took_s, kind) in enumerate(((first_s, "user"), (second_s, "user"), (recovery_s, "recovery")), 1):
            telling.message(number, kind=kind)
            call = telling.request(number)
            telling.accept(call)
            begin_s = telling.clock.now()
            telling.later(took_s).whole(call, "Three files.")
            if harness_s:
                waits = (CpuWait(begin_s, telling.clock.now(), 0.0, 0.0, harness_s),)
                telling.history.add(CpuWaitSeen(turn=number, waits=waits))
            telling.end(number, "Three files.")

    return tell


def gated(tmp_path, before: tuple[float, float, float], after: tuple[float, float, float]) -> GateResult:
    """Ten repeats of each, compared by the file."""
    sides = Campaign(tmp_path / "a"), Campaign(tmp_path / "b")
    for campaign, times in zip(sides, (before, after), strict=True):
        for repeat in range(1, 11):
            varied = (time * (1 + repeat / 1000) for time in times)
            campaign.run(judgement("s", "mine", repeat=repeat), turns_of(*varied))
    write_baseline(baseline_of(sides[0]), tmp_path / "kept.yaml")
    return gate(sides[1].folder, read_baseline(tmp_path / "kept.yaml"))


@pytest.mark.parametrize(
    ("after", "says"),
    [((3.0, 2.5, 0.4), "other turns 0.90 s → 2.92 s, +222%"), ((3.0, 0.5, 2.0), "other turns 0.90 s → 2.51 s, +178%")],
)
def test_a_slower_turn_that_is_not_the_longest_is_worse(tmp_path, after, says):
    """The second message takes five times as long, or the recovery message; the first stays the longest."""
    result = gated(tmp_path, (3.0, 0.5, 0.4), after)
    assert result.exit_code == 1
    assert next(gate_lines(result)).startswith(f"✗ worse: s, mine: {says} (p = ")


def test_a_turn_that_becomes_the_longest_is_worse_too(tmp_path):
    """Then the former longest one is among the others, and both numbers grow."""
    (found,) = gated(tmp_path, (3.0, 0.5, 0.4), (3.0, 6.0, 0.4)).found
    assert "longest turn 3.02 s → 6.03 s" in found.says and "other turns 0.90 s → 3.42 s" in found.says


@pytest.mark.parametrize("after_answer_s", [0.0, 20.0, None])
def test_the_longest_turn_has_an_answer_that_was_held_back_and_what_came_after_it(after_answer_s: float | None):
    """The gate compares all that the user waited until the next message could be given."""
    tell = HistoryBuilder(exit_s=20)
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}", took_s=5)
    tell.wait(20)
    assert numbers_of(tell.end(after_answer_s=after_answer_s).seal()).columns["turn_s"] == pytest.approx(25, abs=0.5)


def test_a_baseline_without_the_other_turns_is_taken_with_a_note(tmp_path):
    campaign = Campaign(tmp_path / "a")
    campaign.run(judgement("s", "mine"), turns_of(3.0, 0.5, 0.4))
    path = tmp_path / "kept.yaml"
    write_baseline(baseline_of(campaign), path)
    assert ", other_turns_s: 0.9," in path.read_text()
    path.write_text(path.read_text().replace(", other_turns_s: 0.9", ""))
    result = gate(campaign.folder, read_baseline(path))
    assert (result.exit_code, len(result.notes)) == (0, 1)
    assert "turns beside the longest are not compared; `wedgehog baseline" in result.notes[0]


def test_a_baseline_keeps_how_busy_its_machine_was_and_times_of_a_busy_one_only_warn(tmp_path):
    """The harness waited for a processor in 80 % of each turn."""
    campaign = Campaign(tmp_path / "a")
    for repeat in range(1, 11):
        campaign.run(judgement("s", "mine", repeat=repeat), turns_of(1.0, 1.0, 1.0, harness_s=0.8))
    path = tmp_path / "kept.yaml"
    write_baseline(baseline_of(campaign), path)
    assert ", busy: 0.8" in path.read_text()
    later = Campaign(tmp_path / "b")
    for repeat in range(1, 11):
        later.run(judgement("s", "mine", repeat=repeat), turns_of(9.0, 1.0, 1.0))
    result = gate(later.folder, read_baseline(path))
    assert (result.exit_code, {it.kind for it in result.found}) == (0, {"maybe"})
    assert "in 1 of 1 scenario the machine was too busy to compare times" in result.notes[0]


def test_the_other_turns_are_all_but_the_longest_of_the_scenario():
    """The recovery message is always among them, also if it takes longer than each message of the scenario."""
    clock = HandClock()
    telling = Telling(History(clock), clock)
    turns_of(3.0, 0.5, 9.0)(telling)
    numbers = numbers_of(telling.history)
    assert (numbers.other_turns_s, numbers.other_turns_least_s) == (9.5, 9.5)
