"""After healing, the next message is answered."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.strategies import Telling


def _after_a_turn() -> Telling:
    tell = Telling()
    tell.message()
    tell.stall(tell.ask(1))
    tell.fails()
    tell.message("recovery")
    return tell


def test_an_answered_message_has_recovered():
    """Its request still carried the turn before."""
    tell = _after_a_turn()
    tell.answer_step(1)
    verdict = check("session_recovers", tell.end().seal())
    assert (verdict.status, verdict.says) == ("pass", "recovered")


def test_a_lost_context_is_said_with_it():
    """The agent began anew: it works, and its user should know."""
    tell = _after_a_turn()
    tell.reply(tell.ask(1, sees=[2]), f"Done {tell.nonce}")
    verdict = check("session_recovers", tell.end().seal())
    assert (verdict.status, verdict.says) == ("pass", "recovered, context lost: its request carried no earlier turn")


def test_an_honest_error_is_followed_by_one_more_message_that_counts():
    """Breakers cool down, pools hold dead connections."""
    tell = _after_a_turn()
    tell.refuse(tell.ask(1), 503)
    tell.fails("Error: circuit open").message("recovery")
    tell.answer_step(1)
    verdict = check("session_recovers", tell.end().seal())
    assert (verdict.status, verdict.says) == ("pass", "recovered late")


def test_a_second_error_fails():
    """Now it counts."""
    tell = _after_a_turn()
    for _ in range(2):
        tell.refuse(tell.ask(1), 503)
        tell.fails("Error: circuit open")
        if not tell.turn:
            tell.message("recovery")
    tell.refuse(tell.ask(1), 503)
    verdict = check("session_recovers", tell.fails().seal())
    assert verdict.status == "fail"
    assert verdict.says.startswith("the second message after healing was not answered: exit code 1")


def test_an_error_without_a_second_message_is_inconclusive():
    """The run was not played to its end."""
    tell = _after_a_turn()
    tell.refuse(tell.ask(1), 503)
    assert check("session_recovers", tell.fails().seal()).status == "inconclusive"


def test_a_refusal_for_pairing_fails_at_once():
    """The history is broken for good: a second message would meet the same refusal."""
    tell = _after_a_turn()
    tell.refuse(tell.ask(1), 400, pairing=True, scripted=False)
    assert check("session_recovers", tell.fails().seal()).status == "fail"


@pytest.mark.parametrize("answer", ["", "Sorry.", "That was all I could do."])
def test_other_words_or_none_are_no_answer(answer: str):
    """Also where no call failed: the nonce did not come back."""
    tell = _after_a_turn()
    tell.reply(tell.ask(1), "Done")
    assert check("session_recovers", tell.end(answer).seal()).status == "fail"


def test_a_refusal_by_our_validator_for_another_reason_is_inconclusive():
    """Not the agent's blame until the control says otherwise."""
    tell = _after_a_turn()
    tell.refuse(tell.ask(1), 400, scripted=False)
    tell.fails().message("recovery")
    tell.refuse(tell.ask(1), 400, scripted=False)
    assert check("session_recovers", tell.fails().seal()).status == "inconclusive"


def test_a_silent_agent_fails_unless_we_were_too_slow_ourselves():
    """A deadline that our own lag may have broken proves nothing."""
    for lag_s, status in ((0.2, "fail"), (5.5, "inconclusive")):
        tell = _after_a_turn().lag(lag_s)
        call = tell.ask(1)
        tell.wait(121).deadline()
        tell.reply(call, how="hung up", delivered=0)
        history = tell.end("", ended="deadline", exit_code=-9).seal()
        assert check("session_recovers", history).status == status


def test_an_agent_that_never_asks_again_fails_but_one_that_never_asked_at_all_is_inconclusive():
    """A stuck agent had shown that it can start; another may be wrongly set up."""
    tell = _after_a_turn()
    tell.wait(61).start_missed()
    assert check("session_recovers", tell.end("", ended="deadline", exit_code=-2).seal()).status == "fail"
    tell = Telling()
    tell.message("recovery")
    tell.wait(61).start_missed()
    assert check("session_recovers", tell.end("", ended="deadline", exit_code=-2).seal()).status == "inconclusive"


def test_where_answers_never_carry_the_models_words_it_cannot_be_told():
    """Words came, and nothing failed."""
    tell = Telling(carries_nonces=False)
    tell.message("recovery")
    tell.reply(tell.ask(1), "Done")
    assert check("session_recovers", tell.end("All is well.").seal()).status == "inconclusive"
