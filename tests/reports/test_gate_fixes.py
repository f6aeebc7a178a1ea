"""The gate where a scenario failed before or fails now: the numbers of another result are no measure."""

import pytest

from wedgehog.reports.gate.baseline import read_baseline, write_baseline
from wedgehog.reports.gate.compare import compared, read_sides
from wedgehog.reports.gate.gate import GateResult, gate, gate_lines

from .conftest import Campaign, judgement
from .test_gate import baseline_of, calls

DEAD = ("session_recovers",)


def campaign_of(folder, *repeats: tuple[int, tuple[str, ...]]) -> Campaign:
    """One scenario; each repeat with its paid calls and what it violates."""
    campaign = Campaign(folder)
    for repeat, (paid, violated) in enumerate(repeats, 1):
        verdict = "fail" if violated else "pass"
        said = {"violated": violated, "says": f"{', '.join(violated)}" if violated else ""}
        campaign.run(judgement("s", "mine", verdict, repeat=repeat, **said), calls(paid))
    return campaign


def gated(tmp_path, before, after) -> GateResult:
    """By the file, as CI does it."""
    write_baseline(baseline_of(campaign_of(tmp_path / "a", *before)), tmp_path / "kept.yaml")
    return gate(campaign_of(tmp_path / "b", *after).folder, read_baseline(tmp_path / "kept.yaml"))


def kinds(result: GateResult) -> set[str]:
    return {it.kind for it in result.found}


def test_a_fix_is_never_worse_though_it_pays_for_what_the_dead_session_did_not(tmp_path):
    result = gated(tmp_path, [(1, DEAD)] * 3, [(8, ())] * 3)
    assert list(gate_lines(result)) == [
        "~ not sure: s, mine: paid calls 1 → 8, +700% (beyond the margin, but it passes now); "
        "simulated cost $0.025 → $0.197, +700% (beyond the margin, but it passes now)",
        "✓ better: s, mine: failed 3 of 3 → passed 3 of 3",
        "gate: 1 not sure, 1 better; 0 of 1 result as before",
    ]
    assert result.exit_code == 0


def test_compare_does_not_call_a_fix_worse_either(tmp_path):
    sides = (campaign_of(tmp_path / name, *[it] * 3).folder for name, it in (("a", (1, DEAD)), ("b", (8, ()))))
    before, after = (str(folder) for folder in sides)
    assert [it.kind for it in compared(*read_sides(before, after, tmp_path))] == ["maybe", "better"]


def test_a_new_failure_is_not_praised_for_the_calls_that_it_no_longer_makes(tmp_path):
    assert kinds(gated(tmp_path, [(8, ())] * 3, [(1, DEAD)] * 3)) == {"worse"}


def test_a_passed_scenario_that_pays_for_twice_as_many_calls_is_worse(tmp_path):
    assert kinds(gated(tmp_path, [(4, ())] * 3, [(8, ())] * 3)) == {"worse"}


def test_where_repeats_vary_the_passed_are_compared_with_the_passed(tmp_path):
    """Fewer repeats die, so the whole costs more; each passed one costs the same."""
    before = [(1, DEAD)] * 5 + [(8, ())] + [(1, DEAD)] * 4
    after = [(8, ())] * 5 + [(1, DEAD)] + [(8, ())] * 4
    assert "worse" not in kinds(gated(tmp_path, before, after))


def test_passed_repeats_beside_failed_ones_that_pay_more_are_worse(tmp_path):
    """The one that dies is cheap on both sides, wherever it stands among the repeats."""
    result = gated(tmp_path, [(1, DEAD), (4, ()), (4, ()), (4, ())], [(8, ()), (8, ()), (1, DEAD), (8, ())])
    assert [(it.kind, it.says.partition(" (")[0]) for it in result.found] == [("worse", "paid calls 4 → 8, +100%")]


@pytest.mark.parametrize(
    ("violated", "found"),
    [
        pytest.param(("paid_call_bound",), {"worse"}, id="the same failure costs more"),
        pytest.param(("paid_call_bound", "turn_answered"), {"worse"}, id="and one more"),
        pytest.param(("turn_answered",), {"worse", "maybe"}, id="another failure is worse by itself"),
    ],
)
def test_what_still_fails_and_pays_more_is_worse(tmp_path, violated, found):
    assert kinds(gated(tmp_path, [(4, ("paid_call_bound",))] * 3, [(12, violated)] * 3)) == found


def test_a_failure_of_which_a_part_is_mended_may_pay_more(tmp_path):
    """The session lives on and still shows a traceback: it pays because it goes on."""
    before, after = [(1, (*DEAD, "no_traceback"))] * 3, [(8, ("no_traceback",))] * 3
    (found,) = gated(tmp_path, before, after).found
    assert (found.kind, found.says.partition(";")[0]) == (
        "maybe",
        "paid calls 1 → 8, +700% (beyond the margin, but it no longer violates session_recovers)",
    )


def test_a_fix_that_pays_less_and_a_failure_that_pays_more_say_so(tmp_path):
    storm, answer = [(12, ("paid_call_bound",))] * 3, [(2, ())] * 3
    for name, before, after in (("fix", storm, answer), ("break", answer, storm)):
        folder = tmp_path / name
        folder.mkdir()
        (found,) = gated(folder, before, after).found
        assert found.kind == {"fix": "better", "break": "worse"}[name]
        assert "paid calls" in found.says
