"""The gate looks into the failed repeats of a scenario that fails at random."""

from xml.etree import ElementTree as ET

import pytest

from wedgehog.reports.gate.baseline import read_baseline
from wedgehog.reports.gate.difference import Difference
from wedgehog.reports.gate.differences import differences
from wedgehog.reports.gate.gate import gate, markdown_lines, write_gate
from wedgehog.reports.played_cells import PlayedCell

from .conftest import Campaign, judgement
from .test_gate import baseline_of, calls
from .test_gate_fixes import campaign_of, gated

LATE = ("turn_answered",)
ONE = (1, ())
KEY = ("s", "mine")


def flaky(storm: int, violated=LATE, failed: int = 6):
    """Ten repeats; the failed ones stand between the others, and ask so often."""
    return [(storm, violated) if repeat < failed else ONE for repeat in (0, 9, 1, 8, 2, 7, 3, 6, 4, 5)]


@pytest.mark.parametrize(("before", "after"), [(2, 12), (40, 120)])
def test_a_storm_that_grows_inside_the_failed_repeats_is_worse(tmp_path, before, after):
    result = gated(tmp_path, flaky(before), flaky(after))
    assert result.exit_code == 1
    (found,) = result.found
    assert found.says.startswith(f"paid calls of failed repeats {before} → {after}, ")


def test_a_new_violation_of_some_failed_repeats_has_a_line(tmp_path):
    """Nine of ten fail by more than before; it may be chance, and is not "as before"."""
    after = [(3, (*LATE, "session_recovers"))] * 9 + [(3, LATE)]
    result = gated(tmp_path, [(3, LATE)] * 10, after)
    (found,) = result.found
    assert (result.exit_code, found.kind) == (0, "maybe")
    assert found.says == "failed by turn_answered before, now in some repeats also by session_recovers"


def test_a_failure_of_which_the_baseline_keeps_no_violation_has_a_line(tmp_path):
    """As in an edited file: whether it fails by something new is unknown, so it is not "as before"."""
    (tmp_path / "old.yaml").write_text(OLD.replace("[turn_answered]", "[]"))
    result = gate(campaign_of(tmp_path / "b", *[(1, LATE)] * 3).folder, read_baseline(tmp_path / "old.yaml"))
    (found,) = [it for it in result.found if "violation" in it.says]
    assert (result.exit_code, found.kind) == (0, "maybe")
    assert found.says.endswith("; failed before by no violation that is kept, now by turn_answered")


def test_one_that_shrinks_is_better_and_the_same_is_as_before(tmp_path):
    for name, after, kinds in (("less", 2, ["better"]), ("same", 12, [])):
        (tmp_path / name).mkdir()
        assert [it.kind for it in gated(tmp_path / name, flaky(12), flaky(after)).found] == kinds


def test_another_number_of_failed_repeats_is_no_storm(tmp_path):
    """Each failed repeat pays as before."""
    assert gated(tmp_path, flaky(12, failed=4), flaky(12, failed=7)).exit_code == 0


def test_a_dearer_failure_that_lost_a_violation_warns(tmp_path):
    """Its sessions may go on further."""
    result = gated(tmp_path, flaky(2, (*LATE, "session_recovers")), flaky(12))
    (found,) = result.found
    assert (result.exit_code, found.kind) == (0, "maybe")
    assert "but it no longer violates session_recovers" in found.says


def test_one_dearer_failure_that_lost_a_violation_warns_too(tmp_path):
    (found,) = gated(tmp_path, [(3, (*LATE, "session_recovers"))], [(300, LATE)]).found
    assert (found.kind, found.says.partition(";")[0]) == (
        "maybe",
        "paid calls 3 → 300 (beyond the margin, but it no longer violates session_recovers)",
    )


def test_too_few_failed_repeats_warn_of_a_storm_and_never_fail(tmp_path):
    """Storms vary by chance, so one of 3 and one of 10 calls show nothing; one of 400 calls is worth a line."""
    for name, after, line in (("chance", 5, []), ("storm", 400, ["maybe"])):
        (tmp_path / name).mkdir()
        found = gated(tmp_path / name, [ONE, (3, LATE), (3, LATE)], [(after, LATE), ONE, (after, LATE)]).found
        assert [it.kind for it in found] == line


@pytest.mark.parametrize(("repeats", "kind"), [(1, "maybe"), (2, "maybe"), (3, "worse")])
def test_fewer_than_three_repeats_that_all_failed_only_warn_of_a_storm(tmp_path, repeats, kind):
    """One run of a scenario that fails at random may ask 3 times, and the next one 12 times."""
    (found,) = gated(tmp_path, [(3, LATE)] * repeats, [(12, LATE)] * repeats).found
    assert found.kind == kind


def test_failed_repeats_beside_passed_ones_are_not_added_to_all_scenarios():
    """How many of them there are is chance, and so would be their sum."""
    before = {("s", "a"): _cell(calls=(1, 1, 2, 2)), ("t", "a"): _cell("t", calls=(1, 1, 2, 2))}
    after = {("s", "a"): _cell(calls=(1, 1, 40, 40)), ("t", "a"): _cell("t", calls=(1, 1, 40, 40))}
    assert {it.scenario for it in differences(before, after)} == {"s", "t"}


def _cell(scenario: str = "s", calls=()) -> PlayedCell:
    return PlayedCell(scenario, "a", {"passed": 2, "failed": 2}, violated=LATE, paid_calls=tuple(map(float, calls)))


def known(folder, *violated: str) -> Campaign:
    """Three known failures by these invariants."""
    campaign = Campaign(folder)
    for repeat in (1, 2, 3):
        campaign.run(judgement("s", "mine", "fail", known="since May", violated=violated, repeat=repeat), calls(1))
    return campaign


def test_a_known_failure_with_a_new_violation_warns_on_every_page(tmp_path):
    """The spec excuses the scenario, but not for this."""
    after = known(tmp_path / "b", "turn_deadline", "session_recovers")
    result = gate(after.folder, baseline_of(known(tmp_path / "a", "turn_deadline")))
    write_gate(result, after.folder)
    (found,) = result.found
    assert (result.exit_code, found.kind) == (0, "known")
    assert found.says.startswith("failed by turn_deadline before, now also by session_recovers")
    assert any("session\\_recovers" in line for line in markdown_lines(result))
    said = ET.parse(after.folder / "gate.xml").findtext(".//system-out") or ""
    assert "known: failed by turn_deadline before, now also by session_recovers" in said


def test_a_passed_scenario_that_is_known_to_fail_now_only_warns_of_its_cost():
    """The spec excuses it, and a storm may be how it fails."""
    before = PlayedCell("s", "a", {"passed": 3}, paid_calls=(3.0,) * 3)
    after = PlayedCell("s", "a", {"known": 3}, violated=LATE, paid_calls=(30.0,) * 3)
    found = differences({("s", "a"): before}, {("s", "a"): after})
    assert {it.kind for it in found} == {"maybe", "known"}


@pytest.mark.parametrize("cells", [1, 3])
def test_a_cost_that_is_no_longer_known_is_not_as_before(cells):
    """As after a change to a model without a price; one line for all."""
    keys = [(f"s{number}", "a") for number in range(cells)]
    before = {key: PlayedCell(*key, {"passed": 3}, paid_calls=(1.0,) * 3, usd=(0.01,) * 3) for key in keys}
    after = {key: PlayedCell(*key, {"passed": 3}, paid_calls=(1.0,) * 3) for key in keys}
    one = Difference("s0", "a", "maybe", "simulated cost $0.010 → unknown: it is not compared")
    every = "the simulated cost of 3 results was known before and is unknown now: it is not compared"
    assert differences(before, after) == [
        one if cells == 1 else Difference("all scenarios together", "a", "maybe", every)
    ]


OLD = """
wedgehog: 0.1.0
world: live
cells:
  s:
    mine: {result: {passed: 4, failed: 6}, repeats: 10, violated: [turn_answered], paid_calls: [12, 1, 12, 1, 12, 1, 12, 1, 12, 12], usd: 0.0246, turn_s: 1.0}
"""  # noqa: E501  as a baseline has it


def test_numbers_in_the_order_of_an_older_baseline_are_not_compared_and_a_note_says_so(tmp_path):
    """They stood in the order of the repeats, and the file does not say which repeats passed."""
    path = tmp_path / "old.yaml"
    path.write_text(OLD)
    result = gate(campaign_of(tmp_path / "b", *[(1, ())] * 4, *[(12, LATE)] * 6).folder, read_baseline(path))
    assert not [it for it in result.found if "paid calls" in it.says]
    (note,) = result.notes
    assert "numbers of results that vary" in note
    assert "`wedgehog baseline RUN --into FILE` adds them" in note


@pytest.mark.parametrize("undecided", ["error", "inconclusive"])
@pytest.mark.parametrize(("now", "kind"), [("failed", "worse"), ("passed", "new")])
def test_a_verdict_where_there_was_none_has_a_line(undecided: str, now: str, kind: str):
    """Two run folders are compared with all that they hold; a baseline keeps nothing that is undecided."""
    before = PlayedCell("s", "mine", {undecided: 3})
    after = PlayedCell("s", "mine", {now: 3}, violated=LATE if now == "failed" else (), says={"failed": "too late"})
    (found,) = differences({KEY: before}, {KEY: after})
    assert found.kind == kind
    says = "now failed 3 of 3: too late" if now == "failed" else "now passed 3 of 3"
    assert found.says == f"undecided before ({before.reads()}); {says}"
