"""The parts of the sentence of a run, one for each violated invariant."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.verdict import Status, Verdict
from wedgehog.reports.markdown import _unexpected
from wedgehog.reports.reasons import RunReason, causes_first, run_reasons

PAIRING = Verdict("fail", "refused; and again", name="tool_call_pairing")
RECOVERS, PASSED = Verdict("fail", "no", name="session_recovers"), Verdict("pass", name="turn_deadline")


def judged(*verdicts: Verdict, says: str, verdict: Status = "fail") -> Judgement:
    return Judgement("a", "b", "sim", verdict, says=says, verdicts=verdicts)


def test_each_violated_invariant_has_a_part_and_causes_are_first():
    """The judge has put them in order; a semicolon in what one says ends no part."""
    run = judged(RECOVERS, PASSED, PAIRING, says=f"{_said(PAIRING)}; {_said(RECOVERS)}")
    assert run_reasons(run) == [RunReason(it.name, it.says) for it in (PAIRING, RECOVERS)]
    assert [it.name for it in causes_first(run)] == ["tool_call_pairing", "session_recovers", "turn_deadline"]


def test_a_sentence_that_is_not_made_of_violations_is_one_part():
    """Such as that of a run that is not decided, or one of an earlier version."""
    undecided = judged(Verdict("inconclusive", "late", name="turn_deadline"), says="late", verdict="inconclusive")
    assert list(map(str, run_reasons(undecided))) == ["late"]
    assert list(map(str, run_reasons(judged(RECOVERS, says="other words")))) == ["other words"]
    assert run_reasons(judged(says="")) == []


def test_markdown_has_a_line_for_each_violation_and_one_for_the_replay():
    """The lines of a list within a list: any other line would be part of the last violation. At most three of them."""
    run = replace(judged(RECOVERS, PAIRING, says=f"{_said(PAIRING)}; {_said(RECOVERS)}"), replay="again")
    assert [line[:9] for line in listed(run)] == ["- **a, b*", "  - tool\\", "  - sessi", "  - `agai"]
    more = [Verdict("fail", "no", name=f"bound_{number}") for number in range(5)]
    many = listed(judged(*more, says="; ".join(map(_said, more))))
    assert [line[:13] for line in many[1:]] == ["  - bound\\_0:", "  - bound\\_1:", "  - … and 3 m"]


def listed(run: Judgement) -> list[str]:
    return "\n".join(_unexpected(cast(Any, SimpleNamespace(runs=[SimpleNamespace(judgement=run)])))).split("\n")


def _said(verdict: Verdict) -> str:
    return f"{verdict.name}: {verdict.says}"
