"""What went well stands in the conversation once."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder

ANSWER = "A small animal with spines. "


def _turn(tell: HistoryBuilder, *, tries: int = 1) -> int:
    """A turn that is answered, with that many calls; its number."""
    number = tell.message()
    for _ in range(tries - 1):
        tell.cut(tell.ask(1))
        tell.wait(2)
    tell.reply(tell.ask(1), f"{ANSWER}{tell.nonce}")
    tell.end()
    return number


def _next(*, doubled: Sequence[int] = (), echoed: Sequence[int] = (), tries: int = 1) -> History:
    """The turn after an answered one, whose first request has something twice."""
    tell = HistoryBuilder()
    _turn(tell, tries=tries)
    tell.message()
    tell.reply(tell.ask(1, doubled=doubled, echoed=echoed), f"Done {tell.nonce}")
    return tell.end().seal()


def test_an_earlier_message_and_an_answer_stand_in_a_request_once():
    """It says what is there twice."""
    message, answer = check("stored_once", _next(doubled=[1])), check("stored_once", _next(echoed=[1]))
    assert message.says == "turn 2: request 2 carries the message of turn 1 twice, though nothing failed"
    assert answer.says == "turn 2: request 2 carries the model's reply to call 1 twice, though nothing failed"
    assert check("stored_once", _next()).status == "pass"


def test_a_turn_with_a_failed_call_is_for_the_strict_level():
    """Its retry may have added the message again, on purpose or not."""
    found = _next(doubled=[1], tries=2)
    assert (check("stored_once", found).status, check("said_once", found).status) == ("pass", "fail")


@pytest.mark.parametrize(("repeated", "status"), [(True, "fail"), (False, "pass")])
def test_a_question_may_stand_again_behind_its_documents(repeated: bool, status: str):
    """Right behind itself it says nothing new."""
    tell = HistoryBuilder()
    number = tell.message()
    tell.reply(tell.ask(1, doubled=[number], repeated=[number] * repeated), f"Done {tell.nonce}")
    assert check("stored_once", tell.end().seal()).status == status


def test_a_summary_may_quote_what_is_kept_beside_it():
    """The agent has built its conversation anew."""
    tell = HistoryBuilder()
    number = _turn(tell)
    tell.message()
    tell.reply(tell.ask(1, background="compact"), "They talked of hedgehogs.")
    tell.reply(tell.ask(1, doubled=[number]), f"Done {tell.nonce}")
    assert check("stored_once", tell.end().seal()).status == "pass"


def test_an_agent_whose_window_was_full_may_build_its_conversation_anew():
    """It was refused for its length."""
    tell = HistoryBuilder()
    number = _turn(tell)
    tell.message()
    tell.refuse(tell.ask(1), 400, message="prompt is too long")
    tell.wait(1)
    tell.reply(tell.ask(1, doubled=[number]), f"Done {tell.nonce}")
    assert check("stored_once", tell.end().seal()).status == "pass"


@pytest.mark.parametrize(("more", "status"), [(0, "fail"), (1, "pass")])
def test_a_tool_call_has_one_result_also_after_the_session_was_loaded(more: int, status: str):
    """Two of one length are one that was stored twice; another one may say how a job in the background ended."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    came = tell.runs(token)
    tell.reply(tell.ask(2, results=[came]), f"{ANSWER}{tell.nonce}")
    tell.end()
    tell.message()
    tell.reply(tell.ask(1, results=[came, replace(came, chars=came.chars + more)]), f"Done {tell.nonce}")
    verdict = check("stored_once", tell.end().seal())
    assert verdict.status == status
    assert status == "pass" or "the result of tool call 1.1.1 twice" in verdict.says


def test_the_words_before_several_calls_may_stand_before_each():
    """Some APIs take one call a message."""
    tell = HistoryBuilder()
    tell.message()
    tokens = tell.reply(tell.ask(1), "I look into both files.", tools=[True, True])
    results = [tell.runs(token) for token in tokens]
    tell.reply(tell.ask(2, results=results, echoed=[1]), f"Done {tell.nonce}")
    assert check("stored_once", tell.end().seal()).status == "pass"


def test_a_reply_that_was_only_slow_is_no_failure():
    """The fault of one call counts by what came of that call."""
    tell = HistoryBuilder()
    number = tell.message()
    call = tell.ask(1)
    tell.fires("slow", call)
    tell.reply(call, f"{ANSWER}{tell.nonce}")
    tell.end()
    tell.message()
    tell.reply(tell.ask(1, doubled=[number]), f"Done {tell.nonce}")
    assert check("stored_once", tell.end().seal()).status == "fail"


@pytest.mark.parametrize(("repeated", "status"), [(True, "fail"), (False, "pass")])
def test_a_reminder_of_the_task_may_be_stored_with_its_turn(repeated: bool, status: str):
    """It stands behind the tools' results; what stands right behind the message was stored twice."""
    tell = HistoryBuilder()
    number = tell.message()
    tell.reply(tell.ask(1), "I look.", tools=[True])
    tell.reply(tell.ask(2, doubled=[number], repeated=[number] * repeated), f"{ANSWER}{tell.nonce}")
    tell.end()
    tell.message()
    call = tell.ask(1, doubled=[number])
    tell.reply(call, f"Done {tell.nonce}")
    found = check("stored_once", tell.end().seal())
    assert found.status == status
    assert any(f"request {call} " in it.says for it in found.violations) is repeated


@pytest.mark.parametrize(("of_form", "status"), [(True, "pass"), (False, "fail")])
def test_a_question_may_stand_again_behind_a_reply_that_was_not_in_the_agents_form(of_form: bool, status: str):
    """Some frameworks tell the model so, and repeat the question; behind a reply that they could read it is a copy."""
    tell = HistoryBuilder()
    number = tell.message()
    call = tell.ask(1)
    tell.fires("plain_answer", call, of_form=of_form)
    tell.reply(call, "It is open.")
    tell.reply(tell.ask(1, repeated=[number]), f"Done {tell.nonce}")
    assert check("stored_once", tell.end().seal()).status == status
