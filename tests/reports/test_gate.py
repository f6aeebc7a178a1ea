"""The gate: stored campaigns against a baseline."""

from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from wedgehog.harness.commands.cli import app
from wedgehog.reports.baseline import Baseline, read_baseline, updated, write_baseline
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.differences import Difference
from wedgehog.reports.gate import GateResult, annotations, gate, gate_lines, markdown_lines, write_gate
from wedgehog.reports.played_cells import cells_of

from .conftest import Campaign, Telling, judgement


def calls(number: int, took_s: float = 1.0):
    """One answered message with so many paid calls."""

    def tell(telling: Telling) -> None:
        telling.start("any", "mine")
        telling.message(1)
        for _ in range(number):
            call = telling.request(1)
            telling.accept(call)
            telling.later(took_s / number).whole(call, "Three files.")
        telling.end(1, "Three files.")

    return tell


def yesterday(tmp_path) -> Campaign:
    """Four scenarios with three repeats each."""
    campaign = Campaign(tmp_path / "yesterday")
    for name in ("doubled", "flipped", "same", "unclear"):
        for repeat in (1, 2, 3):
            campaign.run(judgement(name, "mine", repeat=repeat), calls(5))
    return campaign


def today(tmp_path) -> Campaign:
    """The same later: twice the calls, a fail, one inconclusive run, and a scenario that is new."""
    campaign = Campaign(tmp_path / "today")
    for repeat in (1, 2, 3):
        campaign.run(judgement("doubled", "mine", repeat=repeat), calls(10))
        verdict = {"violated": ("turn_deadline",), "says": "turn 1 took 9.0 s, 5.0 s allowed"} if repeat == 2 else {}
        campaign.run(judgement("flipped", "mine", "fail" if verdict else "pass", repeat=repeat, **verdict), calls(5))
        campaign.run(judgement("same", "mine", repeat=repeat), calls(5))
        campaign.run(
            judgement("unclear", "mine", "inconclusive", repeat=repeat, says="the fault never fired"), calls(5)
        )
        campaign.run(judgement("fresh", "mine", repeat=repeat), calls(5))
    return campaign


def baseline_of(campaign: Campaign) -> Baseline:
    read = load(campaign.folder)
    return updated(Baseline(), read, cells_of(read), prune=False)


@pytest.fixture
def result(tmp_path) -> GateResult:
    return gate(today(tmp_path).folder, baseline_of(yesterday(tmp_path)))


def test_each_change_is_one_line_and_the_exit_code_is_1(result):
    """A count that doubled, a verdict that flipped, a new scenario, an inconclusive one; the same one has no line."""
    assert result.exit_code == 1
    assert list(gate_lines(result)) == [
        "✗ worse: flipped, mine: passed 3 of 3 → passed 2, failed 1 of 3: turn 1 took 9.0 s, 5.0 s allowed",
        "✗ worse: doubled, mine: paid calls 5 → 10, +100% (beyond the margin); "
        "cost $0.123 → $0.246, +100% (beyond the margin)",
        "? undecided: unclear, mine: inconclusive 3 of 3: the fault never fired",
        "+ without a baseline: fresh, mine: no earlier result; now passed 3 of 3",
        "gate: 2 worse, 1 undecided, 1 without a baseline; 1 of 5 results as before",
    ]


def test_an_undecided_run_alone_is_exit_code_3(tmp_path):
    """Inconclusive is no pass, and no fail."""
    before = Campaign(tmp_path / "a")
    before.run(judgement("s", "mine"), calls(1))
    after = Campaign(tmp_path / "b")
    after.run(judgement("s", "mine", "inconclusive"), calls(1))
    assert gate(after.folder, baseline_of(before)).exit_code == 3


def test_an_unfinished_run_is_undecided(tmp_path):
    """A run without a verdict is never a pass."""
    before = yesterday(tmp_path)
    baseline = baseline_of(before)
    before.run(judgement("same", "mine", repeat=4), calls(5), judged=False)
    assert gate(before.folder, baseline).exit_code == 3


def test_the_same_run_passes(tmp_path):
    """Nothing differs: exit code 0 and one line."""
    before = yesterday(tmp_path)
    result = gate(before.folder, baseline_of(before))
    assert result.exit_code == 0
    assert list(gate_lines(result)) == ["gate: 4 of 4 results as before"]


def test_a_fail_that_the_baseline_has_does_not_fail(tmp_path):
    """What is accepted stays accepted; the run's own verdict is still a fail."""
    campaign = Campaign(tmp_path / "a")
    campaign.run(judgement("s", "mine", "fail", violated=("turn_deadline",)), calls(1))
    assert gate(campaign.folder, baseline_of(campaign)).exit_code == 0


@pytest.mark.parametrize(
    ("repeats", "now", "kinds", "code"),
    [
        (3, ("session_recovers", "turn_deadline"), ["worse"], 1),
        (2, ("session_recovers", "turn_deadline"), ["maybe"], 0),
        (3, ("turn_deadline",), [], 0),
    ],
)
def test_a_fail_by_another_invariant_in_each_repeat_is_worse(tmp_path, repeats, now, kinds, code):
    """Two repeats are too few to tell it from chance."""
    before, after = Campaign(tmp_path / "a"), Campaign(tmp_path / "b")
    for repeat in range(1, repeats + 1):
        before.run(judgement("s", "mine", "fail", violated=("turn_deadline",), repeat=repeat), calls(1))
        after.run(judgement("s", "mine", "fail", violated=now, repeat=repeat), calls(1))
    result = gate(after.folder, baseline_of(before))
    assert ([it.kind for it in result.found], result.exit_code) == (kinds, code)


def test_a_run_in_which_nothing_was_played_is_undecided(tmp_path):
    """Each scenario was skipped, for example because the agent has lost its tools."""
    after = Campaign(tmp_path / "b")
    after.run(judgement("same", "mine", "nothing", skipped="no tool shell"))
    result = gate(after.folder, baseline_of(yesterday(tmp_path)))
    assert result.exit_code == 3
    assert list(gate_lines(result))[-1] == "gate: 1 undecided, 4 not played; 0 of 0 results as before"


def test_an_unfinished_run_alone_leaves_no_negative_number(tmp_path):
    after = Campaign(tmp_path / "b")
    after.run(judgement("same", "mine"), calls(5), judged=False)
    assert "; 0 of 0 results as before" in list(gate_lines(gate(after.folder, baseline_of(yesterday(tmp_path)))))[-1]


def test_a_new_scenario_that_fails_fails(tmp_path):
    """Only a baseline makes a fail acceptable."""
    campaign = Campaign(tmp_path / "a")
    campaign.run(judgement("s", "mine", "fail", violated=("turn_deadline",)), calls(1))
    assert gate(campaign.folder, Baseline()).exit_code == 1


def test_a_fail_that_is_gone_is_better(tmp_path):
    """It is told, and it does not fail."""
    before = Campaign(tmp_path / "a")
    before.run(judgement("s", "mine", "fail", violated=("turn_deadline",)), calls(1))
    after = Campaign(tmp_path / "b")
    after.run(judgement("s", "mine"), calls(1))
    result = gate(after.folder, baseline_of(before))
    assert [it.kind for it in result.found] == ["better"]
    assert result.exit_code == 0


def test_a_scenario_that_is_not_played_any_more_is_named(tmp_path):
    """A gate that loses a scenario says so."""
    before = yesterday(tmp_path)
    after = Campaign(tmp_path / "b")
    after.run(judgement("same", "mine"), calls(5))
    lines = list(gate_lines(gate(after.folder, baseline_of(before))))
    assert "- not played: flipped, mine: not played now; before passed 3 of 3" in lines


def test_a_baseline_is_read_as_it_was_written(tmp_path):
    """Every number of every repeat, with equal ones written once."""
    baseline = baseline_of(yesterday(tmp_path))
    path = tmp_path / "baseline.yaml"
    write_baseline(baseline, path)
    assert read_baseline(path) == baseline
    assert "mine: {result: passed, repeats: 3, paid_calls: 5, " in path.read_text()


def test_undecided_results_never_enter_a_baseline(tmp_path):
    """What the baseline had stays."""
    old = baseline_of(yesterday(tmp_path))
    read = load(today(tmp_path).folder)
    fresh = updated(old, read, cells_of(read), prune=False)
    assert fresh.cells["unclear"] == old.cells["unclear"]
    assert "unclear" not in updated(Baseline(), read, cells_of(read), prune=True).cells


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cells:\n  s:\n    a: {result: great}\n", ":3: cells.s.a.result"),
        ("cells:\n  s:\n    a:\n      result: passed\n      paid_call: 3\n", ":5: cells.s.a.paid_call: Extra inputs"),
        ("cells: [\n", ":2: "),
        ("false_alarms: 2\n", ":1: false_alarms: Input should be less than 0.5"),
    ],
)
def test_a_wrong_baseline_is_refused_with_its_line(tmp_path, text, said):
    """One line with file and line."""
    path = tmp_path / "baseline.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"baseline\.yaml") as wrong:
        read_baseline(path)
    assert said in str(wrong.value)


def test_times_of_two_worlds_are_not_compared(tmp_path):
    """Virtual seconds say nothing about real ones."""
    before = Campaign(tmp_path / "a")
    before.run(judgement("s", "mine", world="sim"), calls(1, took_s=1))
    after = Campaign(tmp_path / "b")
    after.run(judgement("s", "mine"), calls(1, took_s=100))
    result = gate(after.folder, baseline_of(before))
    assert result.exit_code == 0
    assert "times are not compared" in result.notes[0]


def test_the_page_for_a_pull_request_has_at_most_60_lines():
    """With 200 differences too; the rest is counted."""
    found = tuple(Difference(f"s{n}", "mine", "worse", "x | y\n<b>") for n in range(200))
    lines = markdown_lines(GateResult(found, (), ("a note",)))
    assert len("\n".join(lines).splitlines()) <= 60
    assert lines[-1].startswith("… and ")
    assert r"x \| y &lt;b&gt;" in "\n".join(lines)


def test_junit_has_a_case_for_each_result(result, tmp_path):
    """Worse is a failure, undecided an error."""
    write_gate(result, tmp_path)
    suite = ET.parse(tmp_path / "gate.xml").getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("5", "2", "1")
    assert [case.get("classname") for case in suite if case.find("error") is not None] == ["unclear"]


def test_annotations_are_commands_of_github(result):
    """An error for what fails the gate, a warning for what is new; no text of an agent can end its command."""
    lines = list(annotations(result))
    assert lines[0].startswith("::error title=worse%3A flipped%2C mine::passed 3 of 3")
    assert lines[-1].startswith("::warning title=without a baseline%3A fresh%2C mine::")
    evil = GateResult((Difference("s", "a,b:c", "worse", "50%\n::error::x"),), ())
    assert list(annotations(evil)) == ["::error title=worse%3A s%2C a%2Cb%3Ac::50%25 ::error::x"]


def test_the_command_writes_a_baseline_and_says_what_changes(tmp_path):
    """The second time it says what is different."""
    path = tmp_path / "kept" / "baseline.yaml"
    run = CliRunner()
    first = run.invoke(app, ["baseline", str(yesterday(tmp_path).folder), "--into", str(path)])
    assert first.exit_code == 0
    assert "4 results" in first.stderr
    second = run.invoke(app, ["baseline", str(today(tmp_path).folder), "--into", str(path)])
    assert "worse: doubled, mine: paid calls 5 → 10" in second.stderr
    assert "left out: unclear, mine" in second.stderr
    assert read_baseline(path).cells["doubled"]["mine"].paid_calls == 10


def test_a_folder_without_a_verdict_makes_no_baseline(tmp_path):
    """One line, and no file."""
    (tmp_path / "empty").mkdir()
    came = CliRunner().invoke(app, ["baseline", str(tmp_path / "empty"), "--into", str(tmp_path / "b.yaml")])
    assert came.exit_code == 2
    assert not (tmp_path / "b.yaml").exists()
