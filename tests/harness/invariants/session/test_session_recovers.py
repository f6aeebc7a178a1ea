"""After healing, the next message is answered."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.run import SessionPlanted
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder


def _after_a_turn() -> HistoryBuilder:
    tell = HistoryBuilder()
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


@pytest.mark.parametrize(
    ("says", "safe", "strict"), [("Error: the conversation is too long", "pass", "fail"), ("Sorry.", "fail", "fail")]
)
def test_what_nothing_heals_needs_an_error_that_its_user_sees(says: str, safe: str, strict: str):
    """The provider refuses what is right too: to leave it out is asked at level strict only."""
    tell = _after_a_turn()
    tell.refuse(tell.ask(1), 400, message="prompt is too long: 9 tokens > 8 maximum")
    tell.fails().message("recovery")
    tell.refuse(tell.ask(1), 400, message="prompt is too long: 9 tokens > 8 maximum")
    tell = tell.fails(says) if says.startswith("Error") else tell.end(says)
    history = tell.seal()
    assert check("session_recovers", history).status == safe
    assert check("session_goes_on", history).status == strict


def test_a_plan_that_is_refused_for_ever_needs_an_error_too():
    """An agent that thinks before it acts sends the full conversation with that request first."""
    tell = _after_a_turn()
    long = "prompt is too long: 9 tokens > 8 maximum"
    tell.refuse(tell.ask(1, background="other"), 400, message=long)
    tell.fails().message("recovery")
    tell.refuse(tell.ask(1, background="other"), 400, message=long)
    history = tell.fails("Error: the conversation is too long").seal()
    assert check("session_recovers", history).status == "pass"
    verdict = check("session_goes_on", history)
    assert verdict.status == "fail" and verdict.says.endswith(f"was refused like the messages before it ({long})")


@pytest.mark.parametrize("answer", ["", "Sorry.", "That was all I could do."])
def test_other_words_or_none_are_no_answer(answer: str):
    """Also where no call failed: the nonce did not come back."""
    tell = _after_a_turn()
    tell.reply(tell.ask(1), "Done")
    assert check("session_recovers", tell.end(answer).seal()).status == "fail"


def test_a_refusal_by_our_validator_for_another_reason_is_inconclusive():
    """Not the agent's blame, unless it is refused for ever in the same words."""
    tell = _after_a_turn()
    tell.refuse(tell.ask(1), 400, scripted=False, message="no such field")
    tell.fails().message("recovery")
    tell.refuse(tell.ask(1), 400, scripted=False, message="no such role")
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
    tell = HistoryBuilder()
    tell.message("recovery")
    tell.wait(61).start_missed()
    assert check("session_recovers", tell.end("", ended="deadline", exit_code=-2).seal()).status == "inconclusive"


def test_where_answers_never_carry_the_models_words_it_cannot_be_told():
    """Words came, and nothing failed."""
    tell = HistoryBuilder(carries_nonces=False)
    tell.message("recovery")
    tell.reply(tell.ask(1), "Done")
    assert check("session_recovers", tell.end("All is well.").seal()).status == "inconclusive"


def _killed() -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    return tell.kill()


def _unheard(tell: HistoryBuilder) -> None:
    """A message that the agent does not react to, until its time is over."""
    tell.message()
    tell.wait(121).deadline()
    tell.end("", ended="deadline", exit_code=-9)


def test_three_messages_without_an_answer_after_a_kill_are_lost():
    """A stuck session: the recovery message is not answered either."""
    tell = _killed()
    for _ in range(3):
        _unheard(tell)
    tell.message("recovery")
    tell.wait(121).deadline()
    verdict = check("session_recovers", tell.end("", ended="deadline", exit_code=-9).seal())
    assert (verdict.status, verdict.says) == (
        "fail",
        "the message after healing was not answered: no answer and no error by the deadline; none of 4 messages was "
        "answered in time: turn 2 lost, turn 3 lost, turn 4 lost, the recovery message lost",
    )


def test_messages_that_waited_are_answered_late_never_or_lost_and_it_is_said_which():
    """After the release: one answer comes in another turn, one after its turn; one message is only carried along."""
    tell = _killed()
    first = tell.message()
    nonce = tell.nonce
    tell.wait(121).deadline().end("", ended="deadline", exit_code=None)
    second = tell.message()
    tell.wait(121).deadline().end("", ended="deadline", exit_code=None)
    third = tell.message()
    tell.wait(121).deadline().end("", ended="deadline", exit_code=None)
    fourth = tell.message()
    tell.wait(121).deadline().end("", ended="deadline", exit_code=None)
    tell.reply(tell.ask(1, turn=second, sees=[1, second]), "Done at last")
    tell.message("recovery")
    tell.reply(tell.ask(1, sees=[1, first, second, third]), f"Done {tell.nonce}")
    verdict = check("session_recovers", tell.end(f"{nonce} and {tell.nonce}").seal())
    assert (verdict.status, verdict.says) == (
        "pass",
        "recovered late; 4 of 5 messages not answered in time: turn 2 answered late (in the recovery message), "
        "turn 3 answered late (after its turn), turn 4 never answered, though still in the conversation, turn 5 lost",
    )
    assert fourth == 5


def test_the_context_is_that_of_the_first_message_that_is_answered_after_a_kill():
    """What comes after it carries it, and hides what was lost."""
    tell = _killed()
    second = tell.message()
    tell.reply(tell.ask(1, sees=[second]), f"Done {tell.nonce}")
    tell.end().message("recovery")
    tell.reply(tell.ask(1, sees=[second, 3]), f"Done {tell.nonce}")
    verdict = check("session_recovers", tell.end().seal())
    assert (verdict.status, verdict.says) == (
        "pass",
        "recovered, context lost: the request of turn 2 carried no earlier turn",
    )


def test_messages_before_the_last_harm_and_those_that_owe_nothing_are_none_that_waited():
    """A later fault has an excuse of its own."""
    tell = HistoryBuilder()
    tell.message()
    tell.wait(121).deadline()
    tell.end("", ended="deadline", exit_code=-9).message()
    tell.ask(1)
    tell.kill().message("wake_up")
    tell.reply(tell.ask(1), "Nothing to do.")
    tell.end("").message("recovery")
    tell.answer_step(1)
    assert check("session_recovers", tell.end().seal()).says == "recovered"


def test_an_agent_that_never_asks_from_a_planted_session_has_not_recovered():
    """Its control had asked, from a session of its own."""
    tell = HistoryBuilder().add(SessionPlanted(turn=0, path="session/a.jsonl", lines=61, sha256="0" * 64))
    tell.message("recovery")
    tell.wait(61).start_missed()
    assert check("session_recovers", tell.end("", ended="deadline", exit_code=-2).seal()).status == "fail"


def test_a_message_that_reached_the_model_and_is_in_no_later_request_is_lost():
    """Its own turn's request does not keep it."""
    tell = _killed()
    tell.message()
    tell.ask(1)
    tell.wait(121).deadline()
    tell.end("", ended="deadline", exit_code=-9).message("recovery")
    tell.reply(tell.ask(1, sees=[1, 3]), f"Done {tell.nonce}")
    verdict = check("session_recovers", tell.end().seal())
    assert verdict.says == (
        "recovered late, its request carried 1 of 2 earlier turns; 1 of 2 messages not answered in time: turn 2 lost"
    )


def bricked(
    *, scripted: bool = False, usual: tuple[str, ...] = (), messages: tuple[str, ...] = ("at 5", "at 7", "at 9")
) -> Verdict:
    """Each message is refused with 400."""
    tell = HistoryBuilder(usual_refusals=usual)
    for kind, message in zip(("user", "recovery", "recovery"), messages, strict=True):
        tell.message(kind)
        tell.refuse(tell.ask(1), 400, message=message, scripted=scripted)
        tell.fails("Error: status 400")
    return check("session_recovers", tell.seal())


def test_a_session_that_is_refused_again_and_again_for_what_it_sends_is_bricked():
    """By our validator; the place in the request may be another one. What a fault refuses may be right."""
    assert bricked(scripted=True).status == "pass"
    verdict = bricked()
    assert verdict.status == "fail"
    assert verdict.says.endswith("the session is bricked: what it keeps sending is refused for ever (at 9)")


def test_what_our_validator_refused_in_the_control_run_or_only_once_bricks_nothing():
    """It may be our mistake."""
    assert bricked(scripted=False, usual=("at 9",)).status == "inconclusive"
    assert bricked(scripted=False, messages=("too long", "no such field", "at 9")).status == "inconclusive"
