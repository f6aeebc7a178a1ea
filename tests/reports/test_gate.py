"""The gate: stored campaigns against a baseline."""

from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from wedgehog.harness.commands.cli import app
from wedgehog.harness.scenario.document import BadFileError
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.gate.baseline import Baseline, read_baseline, updated, write_baseline
from wedgehog.reports.gate.difference import Difference
from wedgehog.reports.gate.gate import GateResult, annotations, gate, gate_lines, markdown_lines, write_gate
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
        "simulated cost $0.123 → $0.246, +100% (beyond the margin)",
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


def test_a_known_fail_that_passed_before_is_a_warning(tmp_path):
    """The spec may excuse it, so the exit code is 0; but it is not as before."""
    before, after = Campaign(tmp_path / "a"), Campaign(tmp_path / "b")
    for repeat in (1, 2, 3):
        before.run(judgement("s", "mine", repeat=repeat), calls(1))
        late = {"violated": ("turn_deadline",), "says": "turn 1 took 9.0 s, 5.0 s allowed"}
        after.run(judgement("s", "mine", "fail", known="since May", repeat=repeat, **late), calls(1))
    result = gate(after.folder, baseline_of(before))
    assert result.exit_code == 0
    assert list(gate_lines(result)) == [
        "~ known: s, mine: passed 3 of 3 → known 3 of 3: turn 1 took 9.0 s, 5.0 s allowed",
        "gate: 1 known; 0 of 1 result as before",
    ]
    assert list(annotations(result)) == [
        "::warning title=known%3A s%2C mine::passed 3 of 3 → known 3 of 3: turn 1 took 9.0 s, 5.0 s allowed"
    ]
    assert gate(after.folder, baseline_of(after)).found == ()


def test_a_known_fail_in_place_of_a_plain_one_is_neither_better_nor_worse(tmp_path):
    """The agent fails as before; only the spec is another one. The way back is worse."""
    plain, known = Campaign(tmp_path / "a"), Campaign(tmp_path / "b")
    late = {"violated": ("turn_deadline",), "says": "turn 1 took 9.0 s, 5.0 s allowed"}
    plain.run(judgement("s", "mine", "fail", **late), calls(1))
    known.run(judgement("s", "mine", "fail", known="since May", **late), calls(1))
    result = gate(known.folder, baseline_of(plain))
    assert (result.exit_code, next(gate_lines(result))) == (
        0,
        "~ known: s, mine: failed 1 of 1 → known 1 of 1: turn 1 took 9.0 s, 5.0 s allowed",
    )
    assert [it.kind for it in gate(plain.folder, baseline_of(known)).found] == ["worse"]


def test_a_run_in_which_nothing_was_played_is_undecided(tmp_path):
    """Each scenario was skipped, for example because the agent has lost its tools."""
    after = Campaign(tmp_path / "b")
    after.run(judgement("same", "mine", "nothing", skipped="no tool shell"))
    result = gate(after.folder, baseline_of(yesterday(tmp_path)))
    assert result.exit_code == 3
    assert list(gate_lines(result))[-1] == "gate: 2 undecided, 3 not played; 0 of 0 results as before"


def test_an_agent_that_played_nothing_is_undecided_also_if_the_baseline_does_not_know_it(tmp_path):
    """As without a baseline; it says so once, and not where each scenario of the baseline says it."""
    before, after = Campaign(tmp_path / "a"), Campaign(tmp_path / "b")
    before.run(judgement("s", "mine"), calls(1))
    after.run(judgement("s", "mine"), calls(1))
    for name in ("s", "t"):
        after.run(judgement(name, "other", "nothing", skipped="it needs the live world"))
    result = gate(after.folder, baseline_of(before))
    assert (result.exit_code, list(gate_lines(result))) == (
        3,
        [
            "? undecided: the run, other: it played no scenario: it needs the live world",
            "gate: 1 undecided; 1 of 1 result as before",
        ],
    )
    before.run(judgement("s", "other"), calls(1))
    (line, _) = gate_lines(gate(after.folder, baseline_of(before)))
    assert line == "? undecided: s, other: skipped now, before passed 1 of 1: it needs the live world"


def test_an_unfinished_run_stands_before_what_only_warns(tmp_path):
    """It decides the exit code, and the page for a pull request shows only the first lines."""
    after = Campaign(tmp_path / "b")
    after.run(judgement("same", "mine"), calls(5), judged=False)
    for number in range(80):
        after.run(judgement(f"new-{number}", "mine"), calls(5))
    result = gate(after.folder, baseline_of(yesterday(tmp_path)))
    assert [it.kind for it in result.found[:2]] == ["undecided", "new"]
    page = markdown_lines(result)
    assert len(page) <= 60 and page[6].startswith("| ? undecided | same/mine |")


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
    assert "mine: {result: passed, repeats: 3, unanswered: 1, paid_calls: 5, " in path.read_text()


def later(begins_s: float):
    """One answered message whose first request comes after so many seconds."""

    def tell(telling: Telling) -> None:
        telling.start("any", "mine")
        telling.message(1)
        call = telling.later(begins_s).request(1)
        telling.accept(call)
        telling.later(1).whole(call, "Three files.")
        telling.end(1, "Three files.")

    return tell


def started_after(folder, begins_s: float) -> Campaign:
    campaign = Campaign(folder)
    for repeat in (1, 2, 3):
        campaign.run(judgement("s", "mine", repeat=repeat), later(begins_s))
    return campaign


def _text(baseline: Baseline, tmp_path) -> str:
    write_baseline(baseline, tmp_path / "kept.yaml")
    return (tmp_path / "kept.yaml").read_text()


def test_an_agent_that_starts_more_slowly_is_worse(tmp_path):
    """Before its first request it makes no turn longer, and its user waits all the same."""
    baseline = baseline_of(started_after(tmp_path / "a", 0.5))
    assert "start_s: 0.5, turn_s: 1" in _text(baseline, tmp_path)
    result = gate(started_after(tmp_path / "b", 2.7).folder, baseline)
    assert result.exit_code == 1
    assert next(gate_lines(result)) == "✗ worse: s, mine: start 0.50 s → 2.70 s, +440% (beyond the margin)"


def test_a_baseline_without_starts_compares_all_else_and_says_so(tmp_path):
    """As one that was written before they were measured; the next `wedgehog baseline` adds them."""
    old = tmp_path / "old.yaml"
    old.write_text(_text(baseline_of(started_after(tmp_path / "a", 0.5)), tmp_path).replace("start_s: 0.5, ", ""))
    campaign = started_after(tmp_path / "b", 2.7)
    result = gate(campaign.folder, read_baseline(old))
    assert (result.exit_code, len(result.notes)) == (0, 1)
    assert "starts are not compared; `wedgehog baseline RUN --into FILE` adds them" in result.notes[0]
    read = load(campaign.folder)
    fresh = updated(read_baseline(old), read, cells_of(read), prune=False)
    assert gate(campaign.folder, fresh).notes == ()


@pytest.mark.parametrize("silent", ["before", "after"])
def test_a_repeat_without_a_request_takes_no_start_from_the_others(tmp_path, silent):
    """A fault kept it away, for example; the starts of the other repeats are kept, read again and compared."""
    sides = {"before": started_after(tmp_path / "a", 0.5), "after": started_after(tmp_path / "b", 4.5)}
    sides[silent].run(judgement("s", "mine", repeat=4), calls(0))
    write_baseline(baseline_of(sides["before"]), tmp_path / "kept.yaml")
    result = gate(sides["after"].folder, read_baseline(tmp_path / "kept.yaml"))
    assert (result.exit_code, result.notes) == (1, ())
    assert "start 0.50 s → 4.50 s, +800% (beyond the margin)" in next(gate_lines(result))


def test_a_baseline_of_repeats_without_a_request_is_not_called_old(tmp_path):
    """Its starts were looked for, and there was none."""
    before = Campaign(tmp_path / "a")
    before.run(judgement("s", "mine"), calls(0))
    write_baseline(baseline_of(before), tmp_path / "kept.yaml")
    assert gate(started_after(tmp_path / "b", 0.5).folder, read_baseline(tmp_path / "kept.yaml")).notes == ()


def test_undecided_results_never_enter_a_baseline(tmp_path):
    """What the baseline had stays."""
    old = baseline_of(yesterday(tmp_path))
    read = load(today(tmp_path).folder)
    fresh = updated(old, read, cells_of(read), prune=False)
    assert fresh.cells["unclear"] == old.cells["unclear"]
    assert "unclear" not in updated(Baseline(), read, cells_of(read), prune=True).cells


GOOD = "wedgehog: 0.1.0\nworld: live\ncells:\n  s:\n"
GOOD += "    a: {result: passed, repeats: 3, paid_calls: 2, usd: 0.1, turn_s: 1}\n"


@pytest.mark.parametrize(
    ("part", "instead", "said"),
    [
        ("result: passed", "result: great", ":5: 'cells.s.a.result': expected "),
        ("usd", "uds", ":5: unknown key 'uds' (did you mean 'usd'?)"),
        (", turn_s: 1", "", ":5: the key 'turn_s' is missing in 'cells.s.a'"),
        ("paid_calls: 2", "paid_calls: -2", ":5: 'cells.s.a.paid_calls': expected a number of at least 0"),
        ("paid_calls: 2", "paid_calls: 1e300", "expected a number of at most 999999"),
        ("paid_calls: 2", "paid_calls: two", ":5: 'cells.s.a.paid_calls': expected a"),
        ("turn_s: 1", "turn_s: [1, 2]", ":5: 'turn_s': expected one number, or one for each of 3 repeats, found 2"),
        ("result: passed", "result: {passed: 1, failed: 1}", ":5: 'result': expected 3 in all"),
        ("repeats: 3", "repeats: 3, expected_fails: 4", ":5: 'expected_fails': expected at most 3, the passed repeats"),
        ("repeats: 3", "repeats: 0", ":5: 'cells.s.a.repeats': expected a number of at least 1, found 0"),
        ("world: live", "world: mars", ":2: 'world': expected 'live' or 'sim', found 'mars'"),
        ("world: live\n", "", "the key 'world' is missing: expected live or sim"),
        ("0.1.0", "9.9.0", ":1: 'wedgehog': expected a baseline of this version, 0.1.0, found '9.9.0'"),
        ("world: live", "world: live\nfalse_alarms: 2", ":3: 'false_alarms': expected a number below 0.5, found 2"),
        ("world: live", "world: live\nfloor: {usd: 1}", ":3: unknown key 'floor' (did you mean 'floors'?)"),
        (GOOD, "cells: [\n", ":2: not valid YAML"),
        (GOOD, "", "the file is empty"),
    ],
)
def test_a_damaged_baseline_is_refused_with_its_line(tmp_path, part, instead, said):
    """In the words of every other file: what was expected, what was found."""
    path = tmp_path / "baseline.yaml"
    path.write_text(GOOD)
    read_baseline(path)
    assert part in GOOD
    path.write_text(GOOD.replace(part, instead, 1))
    with pytest.raises(BadFileError) as wrong:
        read_baseline(path)
    assert f"{path}{said if said[0] == ':' else ''}" in str(wrong.value) and said in str(wrong.value)
    assert "Input should" not in str(wrong.value) and "\n" not in str(wrong.value)


def test_a_baseline_of_another_version_is_written_anew_as_its_message_says(tmp_path):
    """Not updated, even with --prune; once it is deleted, the same command writes a file that is taken."""
    path = tmp_path / "baseline.yaml"
    path.write_text(GOOD.replace("0.1.0", "9.9.0"))
    campaign = Campaign(tmp_path / "a").describe()
    campaign.run(judgement("s", "a"), calls(1))
    words = ["baseline", str(campaign.folder), "--into", str(path), "--prune"]
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2 and refused.stderr.count("\n") == 1
    assert "delete this file, play again without --baseline, and write it with `wedgehog baseline" in refused.stderr
    path.unlink()
    assert CliRunner().invoke(app, words).exit_code == 0
    assert list(read_baseline(path).cells) == ["s"]


def test_a_run_of_another_version_makes_no_baseline(tmp_path):
    """No command would take the file."""
    campaign = Campaign(tmp_path / "a").describe(wedgehog="9.9.0")
    campaign.run(judgement("s", "a"), calls(1))
    ran = CliRunner().invoke(app, ["baseline", str(campaign.folder), "--into", str(tmp_path / "b.yaml")])
    assert ran.exit_code == 2 and "found '9.9.0'" in ran.stderr and ran.stderr.endswith("; play again\n")
    assert not (tmp_path / "b.yaml").exists()


def test_all_mistakes_of_a_baseline_are_named_at_once(tmp_path):
    """One line each, from the top of the file."""
    path = tmp_path / "baseline.yaml"
    path.write_text(GOOD.replace("live", "mars").replace("paid_calls: 2", "paid_calls: -2").replace("0.1.0", "9.9"))
    ran = CliRunner().invoke(app, ["compare", str(path), str(path)])
    assert ran.exit_code == 2
    lines = ran.stderr.splitlines()
    assert [line.removeprefix("wedgehog: ").removeprefix(f"{path}:")[0] for line in lines] == ["1", "2", "5"]


def test_a_binary_file_is_named_with_what_was_expected(tmp_path):
    """As a baseline, and as a history in a run's folder."""
    path = tmp_path / "baseline.yaml"
    path.write_bytes(b"world: \xff\xfe")
    ran = CliRunner().invoke(app, ["compare", str(path), str(path)])
    assert (ran.exit_code, ran.stderr) == (2, f"wedgehog: {path}:1: not UTF-8 text; expected YAML\n")
    campaign = Campaign(tmp_path / "a").describe()
    (campaign.run(judgement("s", "mine"), calls(1)) / "history.jsonl").write_bytes(b"\xff\xfe\n")
    ran = CliRunner().invoke(app, ["check", str(campaign.folder)])
    assert ran.exit_code == 2
    assert "s/mine/history.jsonl:1: not UTF-8 text; expected an event in JSON" in ran.stderr


@pytest.mark.parametrize("broken", ["3", "{", '{"scenario": 3}', '{"scenario": "s"}'])
def test_damaged_verdicts_are_named_in_one_line(tmp_path, broken):
    """No wording of a library reaches a user."""
    campaign = Campaign(tmp_path / "a").describe()
    path = campaign.run(judgement("s", "mine"), calls(1)) / "verdicts.json"
    path.write_text(broken)
    ran = CliRunner().invoke(app, ["check", str(campaign.folder)])
    assert ran.exit_code == 2 and str(path) in ran.stderr
    assert len(ran.stderr.splitlines()) == 1 and "Input" not in ran.stderr and "rgument" not in ran.stderr


def test_planned_runs_that_were_never_begun_are_undecided(tmp_path):
    """An interrupted campaign is no pass: they count beside what was played."""
    campaign = Campaign(tmp_path / "a").describe()
    campaign.run(judgement("s", "mine"), calls(1))
    baseline = baseline_of(campaign)
    plan = campaign.folder / "plan.json"
    plan.write_text('{"cells": [{"repeats": [1]}]}')
    assert gate(campaign.folder, baseline).exit_code == 0
    plan.write_text('{"cells": [{"repeats": [1, 2, 3]}, {"repeats": [1]}]}')
    found = gate(campaign.folder, baseline)
    assert found.exit_code == 3
    assert "? undecided: plan.json: unfinished: 3 of 4 runs were never begun" in list(gate_lines(found))
    plan.write_text("[]")
    assert gate(campaign.folder, baseline).exit_code == 3


@pytest.mark.parametrize("command", [("check",), ("export",), ("baseline", "--into", "b.yaml"), ("compare", "nothing")])
def test_a_folder_that_is_no_run_folder_is_not_searched(tmp_path, command):
    """As `/tmp`, in which runs lie somewhere."""
    campaign = Campaign(tmp_path / "runs")
    campaign.run(judgement("s", "mine"), calls(1))
    ran = CliRunner().invoke(app, [command[0], str(tmp_path), *command[1:]])
    expected = "no run folder; expected that of a campaign, such as runs/latest, or of one run"
    assert (ran.exit_code, ran.stderr) == (2, f"wedgehog: {tmp_path}: {expected}\n")


def test_a_file_that_cannot_be_written_has_its_own_name_in_the_message(tmp_path):
    """Not that of a draft."""
    campaign = Campaign(tmp_path / "a").describe()
    campaign.run(judgement("s", "mine"), calls(1))
    (tmp_path / ".b.yaml.part").mkdir()
    target = tmp_path / "b.yaml"
    ran = CliRunner().invoke(app, ["baseline", str(campaign.folder), "--into", str(target)])
    assert (ran.exit_code, ran.stderr) == (2, f"wedgehog: {target}: Is a directory\n")


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
    ended = Campaign(tmp_path / "ended")
    ended.run(judgement("same", "mine"), calls(5))
    ended.run(judgement("same", "mine", repeat=2), calls(5), judged=False)
    third = run.invoke(app, ["baseline", str(ended.folder), "--into", str(path)])
    assert "left out: 1 unfinished run" in third.stderr
    assert read_baseline(path).cells["doubled"]["mine"].paid_calls == 10


def test_the_command_uses_the_words_of_the_gate(tmp_path):
    path, run = tmp_path / "baseline.yaml", CliRunner()
    for folder, number in (("a", 2), ("b", 3)):
        campaign = Campaign(tmp_path / folder)
        for repeat in (1, 2, 3):
            campaign.run(judgement("s", "mine", repeat=repeat), calls(number))
        said = run.invoke(app, ["baseline", str(campaign.folder), "--into", str(path)]).stderr
    assert "\nnot sure: s, mine: paid calls 2 → 3, +50%" in said


def test_results_of_two_worlds_never_stand_in_one_baseline(tmp_path):
    """Their times would be compared. A run that replaces all of them is taken, and one that drops the others."""
    sides = {world: Campaign(tmp_path / world) for world in ("sim", "live", "both")}
    for world, names in (("sim", "ab"), ("live", "a"), ("both", "ab")):
        for name in names:
            sides[world].run(judgement(name, "mine", world="live" if world == "both" else world), calls(1))
    path, run = tmp_path / "baseline.yaml", CliRunner()

    def kept(world: str, *more: str):
        return run.invoke(app, ["baseline", str(sides[world].folder), "--into", str(path), *more])

    assert kept("sim").exit_code == 0
    refused = kept("live")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "played in the world live, and other results of the baseline in sim; with --prune" in refused.stderr
    assert kept("both").exit_code == kept("live", "--prune").exit_code == 0
    assert read_baseline(path).world == "live" and list(read_baseline(path).cells) == ["a"]


def test_a_folder_without_a_verdict_makes_no_baseline(tmp_path):
    """One line, and no file."""
    (tmp_path / "empty").mkdir()
    came = CliRunner().invoke(app, ["baseline", str(tmp_path / "empty"), "--into", str(tmp_path / "b.yaml")])
    assert came.exit_code == 2
    assert not (tmp_path / "b.yaml").exists()
