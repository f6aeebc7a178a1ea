"""A failure reaches the user, one way or another."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder


def _down(answer: str = "", *, exit_code: int = 0, carries_nonces: bool = True, kind: str = "user") -> History:
    tell = HistoryBuilder(carries_nonces=carries_nonces)
    tell.message(kind)  # type: ignore[arg-type]
    tell.refuse(tell.ask(1), 503)
    return tell.end(answer, exit_code=exit_code).seal()


@pytest.mark.parametrize("answer", ["", "Sorry, something went wrong."])
def test_a_client_that_swallows_a_permanent_503_fails(answer: str):
    """Exit code 0 with an apology, or with nothing, does not tell what happened."""
    assert check("error_surfaced", _down(answer)).status == "fail"


def test_it_is_inconclusive_where_answers_never_carry_the_models_words():
    """Then an answer could not be told from an apology."""
    assert check("error_surfaced", _down("All done.", carries_nonces=False)).status == "inconclusive"


@pytest.mark.parametrize(("answer", "exit_code"), [("service unavailable", 0), ("it broke", 1)])
def test_a_cause_in_the_words_or_an_exit_code_with_words_passes(answer: str, exit_code: int):
    """A person or a script can see it."""
    assert check("error_surfaced", _down(answer, exit_code=exit_code)).status == "pass"


def test_an_error_at_exit_code_zero_passes_with_a_remark():
    """A script cannot see it."""
    verdict = check("error_surfaced", _down("Error: rate limit"))
    assert verdict.says == "turn 1: a script cannot see this error: the exit code is 0"


def test_a_failed_wake_up_owes_no_answer_but_an_error():
    """Its own timer's failure must not vanish either."""
    assert check("error_surfaced", _down("", kind="wake_up")).status == "fail"


def test_a_turn_that_was_killed_at_its_deadline_is_told_under_turn_deadline_only():
    """One fact, one name."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    tell.wait(121).deadline()
    tell.reply(call, how="hung up", delivered=0)
    history = tell.end("", ended="deadline", exit_code=-9).seal()
    assert check("error_surfaced", history).status == "nothing"
    assert check("turn_answered", history).status == "nothing"
    assert check("turn_deadline", history).status == "fail"


def test_a_hidden_failure_in_any_turn_counts():
    """Also in the recovery message's."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.end().message("recovery")
    tell.refuse(tell.ask(1))
    verdict = check("error_surfaced", tell.end("").seal())
    assert (verdict.status, verdict.says) == ("fail", "the recovery message: no answer and no word of an error")
