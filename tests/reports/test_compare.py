"""`wedgehog compare`: two runs, two versions, two agents; and agents side by side in a run's report."""

from io import StringIO
from pathlib import Path

import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from wedgehog.harness.commands.cli import app
from wedgehog.reports import write_folder
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.gate.baseline import write_baseline
from wedgehog.reports.played_cells import PlayedCell
from wedgehog.reports.terminal import print_campaign
from wedgehog.reports.totals import side_by_side, total_lines

from .conftest import Campaign, judgement
from .test_gate import baseline_of, calls, today, yesterday

LATE = {"violated": ("turn_deadline",), "says": "turn 1 took 9.0 s, 5.0 s allowed"}


def compared(*words: object):
    return CliRunner().invoke(app, ["compare", *map(str, words)])


@pytest.fixture
def two_agents(tmp_path) -> Campaign:
    """One scenario in which both pass, one in which the second fails once of two."""
    campaign = Campaign(tmp_path / "both")
    for repeat in (1, 2):
        for agent, paid in (("first@1", 2), ("first@2", 2)):
            campaign.run(judgement("alike", agent, repeat=repeat), calls(paid))
        campaign.run(judgement("apart", "first@1", repeat=repeat), calls(2))
        late = LATE if repeat == 2 else {}
        campaign.run(judgement("apart", "first@2", "fail" if late else "pass", repeat=repeat, **late), calls(2, 9))
    return campaign


def test_two_runs_are_compared_worst_first(tmp_path):
    """Yesterday's and today's: from what to what, and exit code 1."""
    ran = compared(yesterday(tmp_path).folder, today(tmp_path).folder)
    assert ran.exit_code == 1
    assert [line.partition(",")[0] for line in ran.stdout.splitlines()[3:]] == [
        "✗ worse: flipped",
        "✗ worse: doubled",
        "? undecided: unclear",
        "+ new: fresh",
        "2 worse",
    ]
    assert ran.stdout.splitlines()[-1] == "2 worse, 1 undecided, 1 new, 1 of 4 common results alike"


@pytest.mark.parametrize(
    ("first", "second", "line", "code"),
    [
        ("mine", "other", "- gone: tools, other: not played now; before failed 1 of 1", 0),
        ("mine@1", "mine@2", "? undecided: tools, mine@2: skipped now, before failed 1 of 1: needs tools", 3),
    ],
)
def test_a_skip_is_neither_better_nor_worse(tmp_path, first, second, line, code):
    """A failure of what the first agent skipped is new; what the second skips has no verdict, if it could play it."""
    campaign = Campaign(tmp_path / "both")
    campaign.run(judgement("alike", first), calls(2))
    campaign.run(judgement("alike", second), calls(2))
    campaign.run(judgement("tools", first, skipped="needs tools"))
    campaign.run(judgement("tools", second, "fail", **LATE), calls(2, 9))
    ran = compared(first, second, "--in", campaign.folder)
    assert "+ new: tools, " in ran.stdout and "skipped before (needs tools); now failed 1 of 1: turn 1" in ran.stdout
    assert ran.exit_code == 0
    back = compared(second, first, "--in", campaign.folder)
    assert line in back.stdout
    assert back.exit_code == code


def test_no_path_of_this_machine_is_printed(tmp_path, monkeypatch):
    """A folder is named as seen from here, and one elsewhere by its last part."""
    before, after = yesterday(tmp_path).folder, today(tmp_path).folder
    lines = compared(before, after).stdout.splitlines()
    assert lines[0].startswith(f"{before.name}: mine: passed") and str(tmp_path) not in "".join(lines)
    monkeypatch.chdir(tmp_path)
    assert compared(before, after).stdout.splitlines()[1].startswith(f"{after.relative_to(tmp_path)}: mine: ")


def test_the_other_way_round_it_is_better(tmp_path):
    """And what is not played any more is gone; nothing is worse, so the exit code is 0."""
    ran = compared(today(tmp_path).folder, yesterday(tmp_path).folder)
    assert ran.exit_code == 0
    assert "~ not sure: flipped, mine: failed 1 of 3 → 0 of 3 (p = 0.5; at most 0.01 decides)" in ran.stdout
    assert "✓ better: doubled, mine: paid calls 10 → 5, -50%" in ran.stdout
    assert "- gone: fresh, mine" in ran.stdout


def test_an_unfinished_run_of_the_later_side_is_undecided(tmp_path):
    """As in the gate: a run without a verdict is never a pass. One of the earlier side decides nothing."""
    before, after = Campaign(tmp_path / "a").describe(), Campaign(tmp_path / "b").describe()
    for campaign in (before, after):
        campaign.run(judgement("s", "mine"), calls(2))
    missing = after.run(judgement("s", "mine", repeat=2), calls(2), judged=False)
    ran = compared(before.folder, after.folder)
    assert ran.exit_code == 3
    place = missing.relative_to(after.folder)
    assert f"? undecided: {place}: unfinished: the run ended before it was judged" in ran.stdout.splitlines()
    assert ran.stdout.splitlines()[-1] == "1 undecided, 1 of 1 common result alike"
    assert compared(f"{before.folder}:mine", f"{after.folder}:mine", "--markdown").exit_code == 3
    assert compared(after.folder, before.folder).exit_code == 0


def test_an_unfinished_run_of_another_agent_does_not_count(two_agents):
    """Only the agent that is compared matters."""
    two_agents.run(judgement("alike", "first@1", repeat=3), calls(2), judged=False)
    assert compared("first@1", "first@1", "--in", two_agents.folder).exit_code == 3
    assert compared("first@2", "first@2", "--in", two_agents.folder).exit_code == 0


def test_two_agents_of_a_run_are_compared(two_agents):
    """By their names, in the run that `--in` names."""
    ran = compared("first@1", "first@2", "--in", two_agents.folder)
    assert ran.exit_code == 1
    assert "✗ worse: apart, first@1 → first@2: passed 2 of 2 → passed 1, failed 1 of 2: turn 1 took 9.0 s" in ran.stdout
    assert "longest turn 1.00 s → 9.00 s" in ran.stdout
    same = compared(f"{two_agents.folder}:first@1", f"{two_agents.folder}:first@1")
    assert same.exit_code == 0


def test_an_expected_fail_of_one_agent_is_worse_than_a_pass_of_the_other(tmp_path):
    """The verdicts are compared, whatever the scenario or the spec expects of each agent."""
    campaign = Campaign(tmp_path / "incident")
    campaign.run(judgement("s", "fixed", expected="pass"), calls(2))
    campaign.run(judgement("s", "buggy", "fail", "fail: turn_deadline", **LATE), calls(2))
    campaign.run(judgement("k", "fixed"), calls(2))
    campaign.run(judgement("k", "buggy", "fail", known="since May", **LATE), calls(2))
    ran = compared("fixed", "buggy", "--in", campaign.folder)
    assert ran.exit_code == 1 and "buggy: passed 0 of 2 scenarios" in ran.stdout
    for scenario in "sk":
        assert (
            f"✗ worse: {scenario}, fixed → buggy: passed 1 of 1 → failed 1 of 1: turn 1 took 9.0 s, 5.0 s" in ran.stdout
        )
    back = compared("buggy", "fixed", "--in", campaign.folder)
    assert back.exit_code == 0 and "✓ better: s, buggy → fixed: failed 1 of 1 → passed 1 of 1" in back.stdout


@pytest.mark.parametrize("expected", ["fail: turn_deadline", "fail: turn_deadline;tool_round_bound"])
def test_a_fail_that_is_no_longer_as_expected_is_worse(tmp_path, expected):
    """A violation that only the later run has: worse if it is unexpected, else too few repeats to tell."""
    folders = []
    for name, violated in (("old", ("turn_deadline",)), ("new", ("turn_deadline", "tool_round_bound"))):
        wanted = expected if name == "new" else "fail: turn_deadline"
        campaign = Campaign(tmp_path / name)
        campaign.run(judgement("s", "mine", "fail", wanted, violated=violated), calls(2))
        folders.append(campaign.folder)
    ran = compared(*folders)
    assert "failed by turn_deadline before, now also by tool_round_bound" in ran.stdout
    assert ran.exit_code == (1 if expected == "fail: turn_deadline" else 0)


def test_against_a_baseline_an_expected_fail_is_as_expected(tmp_path):
    """But it is no pass: the totals count the verdict. An older file does not say which passes were expected fails."""
    campaign, path = Campaign(tmp_path / "run").describe(), tmp_path / "baseline.yaml"
    campaign.run(judgement("s", "mine", "fail", "fail: turn_deadline", **LATE), calls(2))
    assert CliRunner().invoke(app, ["baseline", str(campaign.folder), "--into", str(path)]).exit_code == 0
    ran = compared(path, campaign.folder)
    assert ran.exit_code == 0 and ran.stdout.count("mine: passed 0 of 1 scenario") == 2
    path.write_text(path.read_text().replace("expected_fails: 1, ", ""))
    assert "baseline.yaml: mine: passed 1 of 1 scenario" in compared(path, campaign.folder).stdout


def test_an_agent_is_named_once_in_its_total(two_agents):
    """`fixed: passed …`, not `fixed: fixed: passed …`."""
    said = compared("first@1", "first@2", "--in", two_agents.folder).stdout
    assert said.startswith("first@1: passed 2 of 2 scenarios")
    assert "\nfirst@2: passed 1 of 2 scenarios" in said


def test_a_new_scenario_that_fails_counts_once(tmp_path):
    """As worse; the results that both sides have are counted without it."""
    before, after = Campaign(tmp_path / "a").describe(), Campaign(tmp_path / "b").describe()
    for campaign in (before, after):
        campaign.run(judgement("old", "mine"), calls(1))
    after.run(judgement("late", "mine", "fail", **LATE), calls(1))
    after.run(judgement("unclear", "mine", "inconclusive"), calls(1))
    said = compared(before.folder, after.folder).stdout.splitlines()
    assert said[-1] == "1 worse, 1 undecided, 1 of 1 common result alike"
    assert [line for line in said if "late," in line] == [
        "✗ worse: late, mine: new, and failed 1 of 1: turn 1 took 9.0 s, 5.0 s allowed"
    ]


def test_versions_of_a_runtime_in_two_runs_are_matched(tmp_path):
    """`first@1` and `first@2` are one, also beside an agent that is in both."""
    folders = []
    for version in ("1", "2"):
        campaign = Campaign(tmp_path / version)
        for agent in (f"first@{version}", f"second@{version}", "third"):
            campaign.run(judgement("s", agent), calls(5 ** int(version)))
        folders.append(campaign.folder)
    said = compared(*folders).stdout
    assert "✗ worse: s, first@1 → first@2: paid calls 5 → 25" in said
    assert "✗ worse: s, second@1 → second@2: paid calls 5 → 25" in said
    assert "✗ worse: s, third: paid calls 5 → 25" in said


def test_a_baseline_is_a_side_too(tmp_path):
    """The stored results against a run."""
    path = tmp_path / "baseline.yaml"
    CliRunner().invoke(app, ["baseline", str(yesterday(tmp_path).folder), "--into", str(path)])
    assert compared(path, today(tmp_path).folder).exit_code == 1


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_an_output_without_utf8_changes_no_exit_code(tmp_path, encoding):
    """As that of a pipe on Windows: signs become ASCII."""
    ran = CliRunner(charset=encoding).invoke(
        app, ["compare", str(yesterday(tmp_path).folder), str(today(tmp_path).folder)]
    )
    assert ran.exit_code == 1, ran.output
    assert "X worse: doubled" in ran.stdout and " -> " in ran.stdout


def test_an_unknown_side_is_one_line(two_agents, tmp_path):
    """With the names that there are."""
    ran = compared("first@1", "third", "--in", two_agents.folder)
    assert ran.exit_code == 2
    assert "no agent of" in ran.stderr and "which has first@1, first@2" in ran.stderr
    assert compared("nobody", "third", "--in", tmp_path / "none").exit_code == 2


def test_the_comparison_is_markdown_too(two_agents):
    """A table for a pull request."""
    said = compared("first@1", "first@2", "--in", two_agents.folder, "--markdown").stdout
    assert "| ✗ worse | apart | first@\u200b1 → first@\u200b2 | passed 2 of 2 → passed 1, failed 1 of 2" in said


def test_an_agent_with_the_name_of_a_variant_stands_there_too(tmp_path):
    """Only in an incident are `fixed` and `buggy` variants of one program."""
    campaign = Campaign(tmp_path / "both").describe(families={"story": "silent-stall"})
    for scenario in ("mine", "story"):
        for agent in ("fixed", "buggy"):
            campaign.run(judgement(scenario, agent), calls(2))
    lines = [line for _, line in side_by_side(load(campaign.folder))]
    assert [line.partition(":")[2][:20] for line in lines] == [" passed 1 of 1 scena"] * 2


def test_an_expected_fail_counts_side_by_side_as_in_a_comparison(tmp_path):
    """Totals count the verdict, so that `passed` has one meaning: a known or expected fail is no pass."""
    campaign = Campaign(tmp_path / "both")
    for agent, expected in (("first", "pass"), ("second", "fail: turn_deadline")):
        late = LATE if agent == "second" else {}
        campaign.run(judgement("s", agent, "fail" if late else "pass", expected, **late), calls(2))
        campaign.run(judgement("k", agent, "fail", known="since May", **LATE), calls(2))
    lines = [line for _, line in side_by_side(load(campaign.folder))]
    assert [line.partition(",")[0] for line in lines] == [
        "first: passed 1 of 2 scenarios",
        "second: passed 0 of 2 scenarios",
        "s:",
        "first: passed 1 of 1",
        "second: failed 1 of 1",
    ]
    assert all(
        f": {line}" in compared("first", "second", "--in", campaign.folder).stdout
        for line in ("passed 1 of 2 scenarios", "passed 0 of 2 scenarios")
    )


def test_an_agent_that_fails_much_more_often_stands_side_by_side(tmp_path):
    """Both fail: the one in each of five repeats, the other in one of five."""
    campaign = Campaign(tmp_path / "both")
    for repeat in range(1, 6):
        for agent, fails in (("always", True), ("once", repeat == 1), ("twice", repeat <= 2)):
            judged = judgement("s", agent, "fail" if fails else "pass", repeat=repeat, **(LATE if fails else {}))
            campaign.run(judged, calls(2))
    lines = [line.partition(",")[0] for _, line in side_by_side(load(campaign.folder))]
    assert lines[3:] == ["s:", "always: failed 5 of 5", "once: passed 4", "twice: passed 3"]


def test_an_agent_that_takes_much_longer_stands_side_by_side(tmp_path):
    """All pass with the same calls, and one needs twice the time, and two seconds more."""
    campaign = Campaign(tmp_path / "both")
    for scenario, slow_s in (("much", 3.5), ("little", 2.5), ("short", 1.9)):
        campaign.run(judgement(scenario, "fast"), calls(2))
        campaign.run(judgement(scenario, "slow"), calls(2, slow_s))
    lines = [line for _, line in side_by_side(load(campaign.folder))]
    assert [line for line in lines if line.endswith(":")] == ["much:"]


def test_agents_stand_side_by_side_in_the_report(two_agents):
    """Totals of each, and the sentences only of the scenario that tells them apart."""
    write_folder(two_agents.folder)
    console = Console(width=200, record=True, file=StringIO())
    print_campaign(load(two_agents.folder), console)
    said = console.export_text()
    together = said[said.index("Side by side") : said.index("Not passed")]
    assert [line.strip() for line in together.splitlines()[1:] if line] == [
        "first@1: passed 2 of 2 scenarios, 4 paid calls, simulated cost $0.098, turns of 2.00 s",
        "first@2: passed 1 of 2 scenarios, 4 paid calls, simulated cost $0.098, turns of 10.0 s",
        "apart:",
        "first@1: passed 2 of 2, 2 paid, turn 1.00 s",
        "first@2: passed 1, failed 1 of 2, 2 paid, turn 9.00 s: turn 1 took 9.0 s, 5.0 s allowed",
    ]
    assert "- apart:\n  - first@\u200b1: passed 2 of 2" in (two_agents.folder / "summary.md").read_text()


def test_repeats_with_the_same_result_are_one_row(two_agents):
    """In the terminal and in Markdown: `pass 2 of 2`."""
    write_folder(two_agents.folder)
    rows = [line for line in (two_agents.folder / "summary.md").read_text().splitlines() if line.startswith("| ")]
    assert [line.split(" | ")[1:4] for line in rows[2:]] == [
        ["apart", "first@\u200b2", "fail 1 of 2"],
        ["alike", "first@\u200b1", "pass 2 of 2"],
        ["alike", "first@\u200b2", "pass 2 of 2"],
        ["apart", "first@\u200b1", "pass 2 of 2"],
        ["apart", "first@\u200b2", "pass 1 of 2"],
    ]


def test_totals_say_that_undecided_scenarios_are_not_in_them():
    """Their calls were paid too: the sums would be too small without a word."""
    cells = [
        PlayedCell("a", "mine", {"passed": 1}, paid_calls=(2.0,), usd=(0.01,), turn_s=(1.0,)),
        PlayedCell("b", "mine", {"error": 1}),
    ]
    assert list(total_lines(cells)) == [
        "mine: passed 1 of 2 scenarios, 2 paid calls, simulated cost $0.010, turns of 1.00 s, "
        "without 1 undecided scenario"
    ]


def _stored(path: Path, world: str, turn_s: float, **more: object) -> Path:
    cell = {"result": "passed", "repeats": 3, "paid_calls": 1, "usd": 0, "turn_s": turn_s}
    path.write_text(yaml.safe_dump({"world": world, "cells": {"s": {"mine": cell}}, **more}))
    return path


def test_times_of_two_worlds_are_not_compared(tmp_path):
    """A virtual second is no real one."""
    before = _stored(tmp_path / "a.yaml", "sim", 1.0)
    ran = compared(before, _stored(tmp_path / "b.yaml", "live", 9.0))
    assert (
        ran.exit_code == 0
        and "a.yaml was played in the world sim, b.yaml in live: times are not compared" in ran.stdout
    )
    assert compared(before, _stored(tmp_path / "c.yaml", "sim", 9.0)).exit_code == 1


@pytest.mark.parametrize("floors", ["before", "after"])
def test_the_floors_of_the_first_stored_baseline_count(tmp_path, floors):
    """As in the gate."""
    more = {"before": {}, "after": {}} | {floors: {"floors": {"turn_s": 10}}}
    before = _stored(tmp_path / "a.yaml", "live", 1.0, **more["before"])
    after = _stored(tmp_path / "b.yaml", "live", 9.0, **more["after"])
    assert compared(before, after).exit_code == (0 if floors == "before" else 1)


def failing(folder: Path, *violated: str) -> Campaign:
    """Three repeats that fail by these invariants."""
    campaign = Campaign(folder)
    for repeat in (1, 2, 3):
        campaign.run(judgement("s", "mine", "fail", violated=violated, says="no word", repeat=repeat), calls(1))
    return campaign


def test_a_baseline_as_the_later_side_tells_of_a_new_violation_too(tmp_path):
    """Which violations each failed repeat has is kept in it."""
    before, after = failing(tmp_path / "a", "turn_deadline"), failing(tmp_path / "b", "said_once", "turn_deadline")
    write_baseline(baseline_of(after), tmp_path / "b.yaml")
    ran = compared(before.folder, tmp_path / "b.yaml")
    assert ran.exit_code == 1
    assert "✗ worse: s, mine: failed by turn_deadline before, now also by said_once" in ran.stdout


def test_an_older_baseline_as_the_later_side_says_what_it_does_not_know(tmp_path):
    """It has all violations of all repeats together."""
    sides = [
        _stored_cells(tmp_path / name, mine={"result": "failed", "violated": violated})
        for name, violated in (("a.yaml", ["turn_deadline"]), ("b.yaml", ["said_once", "turn_deadline"]))
    ]
    ran = compared(*sides)
    assert ran.exit_code == 0
    assert "~ not sure: s, mine: failed by turn_deadline before, now also by said_once (an older baseline" in ran.stdout


def _stored_cells(path: Path, prices: str = "", **agents: dict[str, object]) -> Path:
    stock = {"result": "passed", "repeats": 3, "paid_calls": 1, "usd": 0, "turn_s": 1.0}
    cells = {agent.replace("_at_", "@"): stock | more for agent, more in agents.items()}
    path.write_text(yaml.safe_dump({"world": "live", "prices": prices, "cells": {"s": cells}}))
    return path


def test_compare_says_what_the_two_sides_do_not_share(tmp_path):
    """Keys that an older baseline does not have, bounds of turns and dates of prices, as the gate does."""
    new = {"bound_s": 60, "level": "safe", "start_s": 0.2, "other_turns_s": 0.1, "recovery_calls": 1}
    a = _stored_cells(tmp_path / "a.yaml", "2025-01-01", mine={"bound_s": 5})
    b = _stored_cells(tmp_path / "b.yaml", "2026-01-01", mine=new)
    for more in ((), ("--markdown",)):
        notes = [line for line in compared(a, b, *more).stdout.splitlines() if "note: " in line.lower()]
        assert len(notes) == 3
        assert "starts and turns beside the longest and calls and cost of recovery messages" in notes[0]
        assert "a turn may take 60 s now and could take 5 s before" in notes[1]
        assert "the prices are of 2026-01-01, those of a.yaml of 2025-01-01" in notes[2]


def test_a_longer_time_in_a_baseline_may_be_of_waits(tmp_path):
    """It does not keep them, and the other side is not blamed in silence."""
    a, b = (_stored_cells(tmp_path / f"{turn_s}.yaml", mine={"turn_s": turn_s}) for turn_s in (1.0, 9.0))
    assert "9.0.yaml is a baseline, which keeps no waits for a processor" in compared(a, b).stdout
    assert "waits" not in compared(b, a).stdout


def test_a_version_that_is_gone_has_its_own_name(tmp_path):
    """Of two older versions, one stands for the new one."""
    before = _stored_cells(tmp_path / "a.yaml", x_at_1={}, x_at_2={}, y={})
    after = _stored_cells(tmp_path / "b.yaml", x_at_3={"paid_calls": 9}, y={})
    lines = compared(before, after).stdout.splitlines()
    assert "- gone: s, x@1: not played now; before passed 3 of 3" in lines
    assert any(line.startswith("✗ worse: s, x@2 → x@3: paid calls 1 → 9") for line in lines)
