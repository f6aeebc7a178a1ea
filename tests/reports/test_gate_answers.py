"""The gate sees that fewer messages are answered, and that a scenario is skipped which was played before."""

from functools import partial
from typing import Any

import pytest
from typer.testing import CliRunner

from wedgehog.harness.commands.cli import app
from wedgehog.reports.campaign_folder import load
from wedgehog.reports.gate.baseline import Baseline, read_baseline, write_baseline
from wedgehog.reports.gate.gate import GateResult, gate, gate_lines
from wedgehog.reports.played_cells import skipped_of

from .conftest import NONCE, Campaign, Telling, judgement
from .test_gate import baseline_of

NAMES = ("stall-once", "closed-once", "reset-once", "refused-once")
NO_TOOLS = "the agent sends no tool definitions (tools)"


def answers(telling: Telling, **more: Any) -> None:
    """One message, a call that fails, and an answer by the second."""
    _began(telling, **more)
    for said in ("", f"Three files. {NONCE}1"):
        call = telling.request(1)
        telling.accept(call)
        telling.later(1).whole(call, said)
    telling.end(1, f"Three files. {NONCE}1")


def gives_up(telling: Telling, **more: Any) -> None:
    """The same, and an error after the first call."""
    _began(telling, **more)
    call = telling.request(1)
    telling.accept(call)
    telling.later(1).whole(call, "")
    telling.end(1, "", exit_code=1, error="Error: the model did not answer")


def _began(telling: Telling, **more: Any) -> None:
    telling.start("any", "mine", **more)
    telling.message(1)


def played(folder, repeats: int, *telling) -> Campaign:
    """Scenarios that all pass, one for each `telling`."""
    campaign = Campaign(folder)
    for name, tell in zip(NAMES, telling, strict=False):
        for repeat in range(1, repeats + 1):
            campaign.run(judgement(name, "mine", repeat=repeat), tell)
    return campaign


def kept(campaign: Campaign, tmp_path) -> Baseline:
    write_baseline(baseline_of(campaign), tmp_path / "kept.yaml")
    return read_baseline(tmp_path / "kept.yaml")


def gated(tmp_path, repeats: int, before, after) -> GateResult:
    sides = played(tmp_path / "a", repeats, *before), played(tmp_path / "b", repeats, *after)
    return gate(sides[1].folder, kept(sides[0], tmp_path))


def test_an_agent_that_no_longer_answers_is_worse_though_each_run_passes(tmp_path):
    """At level safe an error in the place of an answer passes. What it saves is not better."""
    result = gated(tmp_path, 10, [answers], [gives_up])
    assert result.exit_code == 1
    assert list(gate_lines(result)) == [
        "✗ worse: stall-once, mine: messages without an answer 0 → 1 (p = 5.4e-06)",
        "gate: 1 worse; 0 of 1 result as before",
    ]


def test_an_agent_that_answers_less_is_not_better_by_what_it_saves_though_one_repeat_answers(tmp_path):
    """Nine of ten repeats end in an error after the first of two calls."""
    sides = played(tmp_path / "a", 10, answers), played(tmp_path / "b", 9, gives_up)
    sides[1].run(judgement(NAMES[0], "mine", repeat=10), answers)
    result = gate(sides[1].folder, kept(sides[0], tmp_path))
    assert [it.kind for it in result.found] == ["worse"]


def test_failed_repeats_that_answer_less_are_not_better_by_what_they_save(tmp_path):
    """Both sides fail by the same violation; now no message is answered."""
    sides = Campaign(tmp_path / "a"), Campaign(tmp_path / "b")
    for side, tell in zip(sides, (answers, gives_up), strict=True):
        for repeat in range(1, 11):
            side.run(judgement(NAMES[0], "mine", "fail", violated=("retry_discipline",), repeat=repeat), tell)
    result = gate(sides[1].folder, kept(sides[0], tmp_path))
    assert [it.kind for it in result.found] == ["worse"]


def test_few_repeats_decide_by_all_scenarios_together(tmp_path):
    """Each alone only warns."""
    result = gated(tmp_path, 3, [answers] * 4, [gives_up] * 4)
    assert result.exit_code == 1
    lines = list(gate_lines(result))
    assert lines[0].startswith("✗ worse: all scenarios together, mine: messages without an answer 0 → 4 (p = ")
    assert sum(line.startswith("~ not sure: ") for line in lines) == 4


def test_one_scenario_with_few_repeats_only_warns(tmp_path):
    """An agent that answers half of the time has such repeats by chance."""
    result = gated(tmp_path, 3, [answers, answers], [gives_up, answers])
    assert result.exit_code == 0
    assert next(gate_lines(result)).startswith(
        "~ not sure: stall-once, mine: messages without an answer 0 → 1 (3 and 3 repeats cannot decide"
    )


def test_an_agent_that_answers_more_may_pay_more(tmp_path):
    """The second call is the price of the answer."""
    result = gated(tmp_path, 10, [gives_up], [answers])
    assert result.exit_code == 0
    said = {it.kind: it.says for it in result.found}
    assert "messages without an answer 1 → 0" in said["better"]
    assert "paid calls 1 → 2, +100% (p = 5.4e-06, but it answers more messages now)" in said["maybe"]


def test_answers_without_nonces_are_not_counted(tmp_path):
    """Whether such an agent answers is not known."""

    sides = [[partial(tell, carries_nonces=False)] for tell in (answers, gives_up)]
    result = gated(tmp_path, 10, *sides)
    assert not any("without an answer" in it.says for it in result.found)


def test_a_baseline_from_before_answers_were_kept_is_taken_with_a_note(tmp_path):
    before, after = played(tmp_path / "a", 10, answers), played(tmp_path / "b", 10, gives_up)
    kept(before, tmp_path)
    path = tmp_path / "kept.yaml"
    path.write_text(path.read_text().replace(" unanswered: 0,", ""))
    result = gate(after.folder, read_baseline(path))
    assert result.exit_code == 0
    assert "messages without an answer are not compared" in result.notes[0]


def skips(folder) -> Campaign:
    """The second of two scenarios is skipped."""
    campaign = played(folder, 3, answers)
    campaign.run(judgement(NAMES[1], "mine", "nothing", skipped=NO_TOOLS))
    return campaign


def test_a_scenario_that_is_skipped_now_is_undecided(tmp_path):
    """An agent that has lost its tools can't be told from one that is well."""
    result = gate(skips(tmp_path / "b").folder, kept(played(tmp_path / "a", 3, answers, answers), tmp_path))
    assert result.exit_code == 3
    assert next(gate_lines(result)) == f"? undecided: closed-once, mine: skipped now, before passed 3 of 3: {NO_TOOLS}"


def test_compare_of_one_agent_has_it_undecided(tmp_path):
    before, after = played(tmp_path / "a", 3, answers, answers), skips(tmp_path / "b")
    ran = CliRunner().invoke(app, ["compare", str(before.folder), str(after.folder)])
    assert ran.exit_code == 3
    assert "? undecided: closed-once, mine: skipped now" in ran.stdout


def test_compare_of_two_agents_has_it_gone(tmp_path):
    """Another agent may never have had what the scenario needs."""
    before, after = played(tmp_path / "a", 3, answers, answers), Campaign(tmp_path / "b")
    after.run(judgement(NAMES[0], "other"), answers)
    after.run(judgement(NAMES[1], "other", "nothing", skipped=NO_TOOLS))
    ran = CliRunner().invoke(app, ["compare", str(before.folder), str(after.folder)])
    assert ran.exit_code == 0
    assert "- gone: closed-once, mine: not played now" in ran.stdout


def test_a_baseline_that_is_updated_drops_what_the_run_skipped(tmp_path):
    """And says so; the gate is green then."""
    path = tmp_path / "kept.yaml"
    kept(played(tmp_path / "a", 3, answers, answers), tmp_path)
    after = skips(tmp_path / "b")
    ran = CliRunner().invoke(app, ["baseline", str(after.folder), "--into", str(path)])
    said = f"gone: closed-once, mine: not played now; before passed 3 of 3; skipped: {NO_TOOLS}"
    assert said in ran.stderr.replace("\n", " ")
    assert gate(after.folder, read_baseline(path)).found == ()


@pytest.mark.parametrize("repeat", [1, 2])
def test_a_scenario_that_one_repeat_played_is_not_skipped(tmp_path, repeat):
    """Its other repeats count."""
    campaign = played(tmp_path / "b", 3, answers)
    campaign.run(judgement(NAMES[0], "mine", "nothing", repeat=3 + repeat, skipped=NO_TOOLS))
    assert skipped_of(load(campaign.folder)) == {}
    assert gate(campaign.folder, kept(played(tmp_path / "a", 3, answers), tmp_path)).exit_code == 0
