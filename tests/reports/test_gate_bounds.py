"""Results of the gate where a turn may take another time than in the baseline."""

import pytest

from wedgehog.harness.record.judgement import Judgement
from wedgehog.reports.gate.baseline import read_baseline, write_baseline
from wedgehog.reports.gate.gate import GateResult, gate, gate_lines, markdown_lines

from .conftest import Campaign, Telling, judgement
from .test_gate import baseline_of

TOO_LONG = "turn 1 took 6.0 s, 5.0 s allowed"


def lasting(turn_s: float, bound_s: float | None):
    """One answered message, under this bound of a turn."""

    def tell(telling: Telling) -> None:
        telling.start("any", "mine", turn_s=bound_s)
        telling.message(1)
        call = telling.request(1)
        telling.accept(call)
        telling.later(turn_s).whole(call, "Three files.")
        telling.end(1, "Three files.")

    return tell


def campaign_of(folder, turn_s: float, bound_s: float | None, *violated: str) -> Campaign:
    """Three repeats, which all fail if anything is violated."""
    campaign = Campaign(folder)
    for repeat in (1, 2, 3):
        campaign.run(_judged(violated, repeat), lasting(turn_s, bound_s))
    return campaign


def _judged(violated: tuple[str, ...], repeat: int) -> Judgement:
    verdict = "fail" if violated else "pass"
    return judgement("s", "mine", verdict, repeat=repeat, violated=violated, says=TOO_LONG if violated else "")


def gated(before: Campaign, after: Campaign, tmp_path) -> GateResult:
    """By the file, as CI does it."""
    write_baseline(baseline_of(before), tmp_path / "kept.yaml")
    return gate(after.folder, read_baseline(tmp_path / "kept.yaml"))


def test_a_turn_over_a_tighter_bound_than_the_baselines_is_not_sure(tmp_path):
    """The baseline has the common bound of two agents, and one of them alone has its own limit."""
    before = campaign_of(tmp_path / "a", 6.0, 120.0)
    result = gated(before, campaign_of(tmp_path / "b", 6.0, 5.0, "turn_deadline"), tmp_path)
    assert result.exit_code == 0
    assert list(gate_lines(result)) == [
        "~ not sure: s, mine: passed 3 of 3 → failed 3 of 3, but a turn may take 5 s now and could take 120 s before, "
        "so neither turn_deadline nor the numbers are compared; play with `--turn-s 120` for equal bounds: " + TOO_LONG,
        "gate: 1 not sure; 0 of 1 result as before",
    ]


@pytest.mark.parametrize(("bound_s", "kind"), [(31.0, "worse"), (29.0, "worse"), (11.0, "maybe"), (5.5, "maybe")])
def test_a_hang_is_worse_under_a_smaller_bound_that_the_baseline_was_far_from(tmp_path, bound_s, kind):
    """Its turns took 6 s under 30 s. They pass under 29 s too; whether they would under 11 s is not so sure."""
    before = campaign_of(tmp_path / "a", 6.0, 30.0)
    after = campaign_of(tmp_path / "b", bound_s, bound_s, "turn_deadline")
    result = gated(before, after, tmp_path)
    assert [it.kind for it in result.found] == [kind]
    assert result.exit_code == (1 if kind == "worse" else 0)


def test_a_turn_far_from_the_smaller_bound_that_hung_before_is_better(tmp_path):
    before = campaign_of(tmp_path / "a", 29.0, 29.0, "turn_deadline")
    assert [it.kind for it in gated(before, campaign_of(tmp_path / "b", 6.0, 30.0), tmp_path).found] == ["better"]


def test_many_bounds_have_one_note(tmp_path):
    """The page for a pull request has at most 60 lines."""
    sides = Campaign(tmp_path / "a"), Campaign(tmp_path / "b")
    for number in range(40):
        for campaign, bound_s in zip(sides, (100.0 + number, 60.0), strict=True):
            campaign.run(judgement(f"s{number}", "mine"), lasting(1.0, bound_s))
    result = gated(*sides, tmp_path)
    (note,) = result.notes
    assert note.startswith(
        "a turn may take another time now than before, in 40 results (s0, mine: a turn may take 60 s"
    )
    assert len(markdown_lines(result)) <= 60


def test_a_turn_that_a_looser_bound_lets_go_on_is_no_slower_turn(tmp_path):
    """It hung for 5 s until it was stopped, and now for 120 s."""
    before = campaign_of(tmp_path / "a", 5.0, 5.0, "turn_deadline")
    result = gated(before, campaign_of(tmp_path / "b", 120.0, 120.0, "turn_deadline"), tmp_path)
    assert [it.kind for it in result.found] == ["maybe"]
    assert "failed 3 of 3 → failed 3 of 3, but a turn may take 120 s now and could take 5 s before" in str(result.found)


@pytest.mark.parametrize("bound_s", [60.0, 120.0])
def test_a_new_violation_of_a_looser_bound_is_worse(tmp_path, bound_s):
    """A turn of more than 120 s is also one of more than 5 s; so calls, cost and times are compared too."""
    before = campaign_of(tmp_path / "a", 1.0, 5.0)
    result = gated(before, campaign_of(tmp_path / "b", bound_s, bound_s, "turn_deadline"), tmp_path)
    assert [it.kind for it in result.found] == ["worse"]
    assert result.exit_code == 1
    assert result.found[0].says.startswith("passed 3 of 3 → failed 3 of 3: turn 1 took")
    assert "longest turn 1.00 s → " in result.found[0].says
    assert f"a turn may take {bound_s:g} s now and could take 5 s before" in result.notes[0]


def test_a_new_violation_of_a_looser_bound_beside_an_old_fail_is_worse(tmp_path):
    """The baseline failed too, by something else."""
    before = campaign_of(tmp_path / "a", 1.0, 5.0, "session_recovers")
    after = campaign_of(tmp_path / "b", 120.0, 120.0, "session_recovers", "turn_deadline")
    result = gated(before, after, tmp_path)
    assert result.exit_code == 1
    assert "failed by session_recovers before, now also by turn_deadline" in result.found[0].says


def test_a_fail_that_is_gone_by_a_tighter_bound_too_is_better(tmp_path):
    before = campaign_of(tmp_path / "a", 120.0, 120.0, "turn_deadline")
    result = gated(before, campaign_of(tmp_path / "b", 1.0, 5.0), tmp_path)
    assert [it.kind for it in result.found] == ["better"]
    assert "failed 3 of 3 → passed 3 of 3" in result.found[0].says


def test_a_fail_that_a_looser_bound_takes_away_is_not_called_better(tmp_path):
    before = campaign_of(tmp_path / "a", 6.0, 5.0, "turn_deadline")
    result = gated(before, campaign_of(tmp_path / "b", 6.0, 120.0), tmp_path)
    assert [it.kind for it in result.found] == ["maybe"]


def late_in(folder, repeats: int, late: int, bound_s: float, name: str = "turn_deadline") -> Campaign:
    """So many of the repeats violate it: the bound, and so last as long; the others take 1 s."""
    campaign = Campaign(folder)
    for repeat in range(1, repeats + 1):
        violated = (name,) if repeat <= late else ()
        campaign.run(_judged(violated, repeat), lasting(bound_s if violated else 1.0, bound_s))
    return campaign


@pytest.mark.parametrize(
    ("before", "after", "kind", "says"),
    [
        (
            (10, 1, 5.0),
            (10, 7, 120.0),
            "worse",
            "failed 1 of 10 → 7 of 10 (p = 0.0099), although a turn may take 120 s ",
        ),
        (
            (10, 7, 120.0),
            (10, 1, 5.0),
            "better",
            "failed 7 of 10 → 1 of 10 (p = 0.0099), although a turn may take 5 s ",
        ),
        ((10, 1, 120.0), (10, 7, 5.0), "maybe", ", but a turn may take 5 s now and could take 120 s before"),
        ((10, 7, 5.0), (10, 1, 120.0), "maybe", ", but a turn may take 120 s now and could take 5 s before"),
        ((10, 5, 5.0), (10, 5, 120.0), "maybe", ", but a turn may take 120 s now and could take 5 s before"),
        ((10, 1, 5.0), (10, 6, 120.0), "maybe", "failed 1 of 10 → 6 of 10 (p = 0.029; at most 0.01 decides), although"),
        ((3, 1, 5.0), (3, 3, 120.0), "maybe", "failed 1 of 3 → 3 of 3 (p = 0.2; at most 0.01 decides), although"),
        ((10, 10, 120.0), (10, 7, 5.0), "maybe", ", but a turn may take 5 s now and could take 120 s before"),
    ],
)
def test_more_failures_under_a_wider_bound_are_compared_as_under_the_tighter_one(tmp_path, before, after, kind, says):
    """A repeat that fails under 120 s fails under 5 s too. The share counts as where the bounds are equal."""
    found = gated(late_in(tmp_path / "a", *before), late_in(tmp_path / "b", *after), tmp_path).found
    assert [it.kind for it in found] == [kind]
    assert says in found[0].says


def test_a_new_violation_does_not_make_late_turns_under_a_tighter_bound_worse(tmp_path):
    """Only one of ten repeats has it, and the others may be late because of the bound."""
    before = late_in(tmp_path / "a", 10, 1, 120.0, "session_recovers")
    after = late_in(tmp_path / "b", 10, 10, 5.0)
    after.run(_judged(("turn_deadline", "tool_round_bound"), 11), lasting(5.0, 5.0))
    assert [it.kind for it in gated(before, after, tmp_path).found] == ["maybe"]


@pytest.mark.parametrize("before_s", [5.0, 120.0])
def test_another_violation_is_worse_whatever_the_bounds_are(tmp_path, before_s):
    before = campaign_of(tmp_path / "a", 1.0, before_s)
    result = gated(before, campaign_of(tmp_path / "b", 6.0, 5.0, "session_recovers", "turn_deadline"), tmp_path)
    assert result.exit_code == 1
    assert result.found[0].says.startswith("passed 3 of 3 → failed 3 of 3: ")


def test_by_one_bound_a_turn_over_it_is_worse(tmp_path):
    before = campaign_of(tmp_path / "a", 4.0, 5.0)
    result = gated(before, campaign_of(tmp_path / "b", 6.0, 5.0, "turn_deadline"), tmp_path)
    assert (result.exit_code, result.notes) == (1, ())


def test_another_bound_that_no_turn_reaches_is_a_note_and_times_are_compared(tmp_path):
    """Nothing was stopped on either side, so no number depends on the bound."""
    before = campaign_of(tmp_path / "a", 1.0, 120.0)
    result = gated(before, campaign_of(tmp_path / "b", 4.0, 5.0), tmp_path)
    assert result.exit_code == 1
    assert "longest turn 1.00 s → 4.00 s, +300% (beyond the margin)" in result.found[0].says
    assert result.notes == (
        "a turn may take 5 s now and could take 120 s before, in 1 result (s, mine); "
        "play with `--turn-s 120` for equal bounds",
    )


def test_a_baseline_without_bounds_is_taken_and_a_note_says_so(tmp_path):
    """As one that was written before they were kept."""
    before = campaign_of(tmp_path / "a", 1.0, None)
    result = gated(before, campaign_of(tmp_path / "b", 6.0, 5.0, "turn_deadline"), tmp_path)
    assert result.exit_code == 1
    assert len(result.notes) == 1
    assert "bounds of turns are not compared; `wedgehog baseline RUN --into FILE` adds them" in result.notes[0]
