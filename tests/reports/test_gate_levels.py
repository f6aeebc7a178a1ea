"""Results of the gate where the verdicts are of another level than those of the baseline."""

import pytest

from wedgehog.reports.gate.baseline import read_baseline, write_baseline
from wedgehog.reports.gate.compare import compare_lines, compared, read_sides
from wedgehog.reports.gate.gate import GateResult, gate, gate_lines

from .conftest import Campaign, judgement
from .test_gate import baseline_of, calls


def campaign_of(folder, level: str, *violated: str) -> Campaign:
    """Three repeats of one scenario, all alike."""
    campaign, verdict = Campaign(folder), "fail" if violated else "pass"
    for repeat in (1, 2, 3):
        said = {"violated": violated, "says": "it asked twice" if violated else ""}
        campaign.run(judgement("s", "mine", verdict, repeat=repeat, level=level, **said), calls(4))
    return campaign


def gated(before: Campaign, after: Campaign, tmp_path) -> GateResult:
    """By the file, as CI does it."""
    write_baseline(baseline_of(before), tmp_path / "kept.yaml")
    return gate(after.folder, read_baseline(tmp_path / "kept.yaml"))


@pytest.mark.parametrize(
    ("before", "after", "kind", "code"),
    [
        pytest.param(("safe",), ("strict", "asked_once"), "undecided", 3, id="stricter and worse"),
        pytest.param(("strict", "asked_once"), ("safe",), "maybe", 0, id="looser and better"),
        pytest.param(("strict",), ("safe", "turn_answered"), "worse", 1, id="looser and worse all the same"),
        pytest.param(("safe", "turn_answered"), ("strict",), "better", 0, id="stricter and better all the same"),
        pytest.param(("safe",), ("strict",), None, 0, id="passed by both"),
    ],
)
def test_what_the_level_alone_can_explain_decides_nothing(tmp_path, before, after, kind, code):
    """What fails at `safe` fails at `strict` too."""
    result = gated(campaign_of(tmp_path / "a", *before), campaign_of(tmp_path / "b", *after), tmp_path)
    assert ([it.kind for it in result.found], result.exit_code) == ([kind] if kind else [], code)
    levels = f"it is judged at level {after[0]} now and was at {before[0]} before; "
    assert result.notes == (f"{levels}`wedgehog check RUN --level {before[0]}` judges it as before, in 1 result",)


def test_by_one_level_it_is_worse_without_a_note(tmp_path):
    before, after = campaign_of(tmp_path / "a", "strict"), campaign_of(tmp_path / "b", "strict", "asked_once")
    result = gated(before, after, tmp_path)
    assert (result.exit_code, result.notes) == (1, ())


def test_compare_says_it_too(tmp_path):
    folders = (campaign_of(tmp_path / "a", "safe").folder, campaign_of(tmp_path / "b", "strict", "asked_once").folder)
    sides = read_sides(*map(str, folders), tmp_path)
    found = compared(*sides)
    assert [it.kind for it in found] == ["undecided"]
    assert any("judged at level strict now" in line for line in compare_lines(*sides, found))


def test_a_baseline_without_levels_is_taken_and_a_note_says_so(tmp_path):
    """As one that was written before they were kept."""
    write_baseline(baseline_of(campaign_of(tmp_path / "a", "safe")), tmp_path / "kept.yaml")
    kept = (tmp_path / "kept.yaml").read_text()
    (tmp_path / "kept.yaml").write_text(kept.replace(", level: safe", ""))
    result = gate(campaign_of(tmp_path / "b", "safe").folder, read_baseline(tmp_path / "kept.yaml"))
    assert "level" in kept and list(gate_lines(result))[-1] == "gate: 1 of 1 result as before"
    assert "levels of verdicts are not compared" in result.notes[0]
