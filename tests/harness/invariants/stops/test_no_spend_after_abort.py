"""After a stop nothing is spent."""

from typing import Any

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.turn import AbortSent
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.call_builder import TICK_S
from wedgehog.harness.testing.history_builder import result


def _a_request_after(seconds: float, *, lag_s: float = 0.0, background: str = "") -> History:
    tell = HistoryBuilder().lag(lag_s)
    tell.message()
    tell.ask(1)
    tell.abort().wait(seconds - TICK_S)
    tell.refuse(tell.ask(2, background=background))
    return tell.end("", ended="aborted", exit_code=130).seal()


@pytest.mark.parametrize(
    ("seconds", "lag_s", "status"),
    [(2.9, 0.0, "pass"), (3.1, 0.0, "fail"), (3.1, 0.3, "inconclusive"), (3.4, 0.3, "fail"), (60, 6.0, "inconclusive")],
)
def test_a_request_may_start_within_two_stretched_seconds(seconds: float, lag_s: float, status: str):
    """One that was already on its way is no spending."""
    assert check("no_spend_after_abort", _a_request_after(seconds, lag_s=lag_s)).status == status


@pytest.mark.parametrize(("slows", "link", "status"), [(True, "llm", "inconclusive"), (False, "llm", "fail")])
def test_a_request_on_a_slow_link_may_have_been_sent_before_the_abort(slows: bool, link: str, status: str):
    """It is still on its way when its connection is closed."""
    tell = HistoryBuilder()
    tell.message()
    fired = {"fault": 0, "name": "drip", "turn": 1, "step": None, "attempt": None, "call": None, "proof": "built"}
    tell.add(FaultFired(link=link, slows=slows, **fired))
    tell.abort().wait(10)
    tell.refuse(tell.ask(1))
    assert check("no_spend_after_abort", tell.end("", ended="aborted", exit_code=130).seal()).status == status


def test_a_service_without_a_way_to_stop_a_turn_may_finish_it_for_the_next_visit():
    """It sees only that its client is gone; that it worked on is said, and red where much is asked."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.add(AbortSent(turn=1, hangs_up=True))
    tell.wait(10)
    tell.answer_step(2, results=[result("1.1.1")])
    history = tell.end("", ended="aborted", exit_code=None).seal()
    found, strict = check("no_spend_after_abort", history), check("stops_when_told", history)
    assert found.status == "pass" and found.says == (
        "turn 1: 1 model request (1 paid) came after its client was gone (the spec names no `abort`): "
        "some services finish the turn for the next visit"
    )
    assert strict.status == "fail" and "request 2 came 10." in strict.says


def test_a_background_call_spends_as_well():
    """Its price is the same."""
    assert check("no_spend_after_abort", _a_request_after(10, background="title")).status == "fail"


@pytest.mark.parametrize(("exit_code", "status"), [(130, "fail"), (None, "pass")])
def test_a_subagent_in_the_background_is_stopped_with_its_process(exit_code: int | None, status: str):
    """Agents that stay differ: some stop only the turn, and their model hears of the end later."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True], name="task")
    tell.ask(2, results=[result("1.1.1", chars=30, printed=False, signs=("elsewhere",))])
    tell.reply(tell.ask(1, side="subagent 1"), tools=[True])
    tell.abort().end("", ended="aborted", exit_code=exit_code).wait(10)
    last = tell.ask(2, side="subagent 1", turn=1)
    tell.reply(last, "It is empty.")
    if exit_code is None:
        tell.reply(tell.ask(2, turn=1, quotes=[last]), "I have heard of it.")
    found = check("no_spend_after_abort", tell.seal())
    assert found.status == status
    assert found.says.endswith("after the abort; subagent 1 went on in the background") is (status == "pass")


def test_requests_after_the_next_message_are_that_messages():
    """The session goes on."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    tell.abort().end("", ended="aborted", exit_code=130)
    tell.wait(10).message("recovery")
    tell.answer_step(1)
    assert check("no_spend_after_abort", tell.end().seal()).status == "pass"


@pytest.mark.parametrize(("step", "status"), [(2, "fail"), (1, "pass")])
def test_a_subagent_that_goes_on_behind_the_next_message_still_spends(step: int, status: str):
    """The stop did not reach it; one that begins anew is the next turn's."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.ask(1, side="subagent 1")
    tell.abort().end("", ended="aborted", exit_code=130)
    tell.wait(10).message("recovery")
    tell.reply(tell.ask(step, side="subagent 1"), "It is empty.")
    tell.answer_step(1)
    assert check("no_spend_after_abort", tell.end().seal()).status == status


@pytest.mark.parametrize(("resumed_first", "status"), [(True, "pass"), (False, "fail")])
def test_a_subagent_that_the_next_turns_model_resumes_is_that_turns(resumed_first: bool, status: str):
    """A tool call of the next turn may give it more work; what it asks before that call is still the stopped turn's."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.reply(tell.ask(1, side="subagent 1"), tools=[True])
    tell.ask(2, side="subagent 1")
    tell.abort().end("", ended="aborted", exit_code=130)
    tell.wait(10).message()
    if not resumed_first:
        tell.refuse(tell.ask(2, side="subagent 1"))
    tell.reply(tell.ask(1), tools=[True])
    tell.reply(tell.ask(2, side="subagent 1"), "It is empty.")
    tell.answer_step(2)
    assert check("no_spend_after_abort", tell.end().seal()).status == status


def test_a_tool_call_of_the_stopped_turn_itself_resumes_no_subagent():
    """It goes on behind the next message with all that it had begun."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.ask(1, side="subagent 1")
    tell.abort().end("", ended="aborted", exit_code=130)
    tell.wait(10).message("recovery")
    tell.reply(tell.ask(2, turn=1), tools=[True])
    tell.reply(tell.ask(2, side="subagent 1"), "It is empty.")
    tell.answer_step(1)
    verdict = check("no_spend_after_abort", tell.end().seal())
    assert verdict.status == "fail" and "2 model requests" in verdict.says


def _stopped_and_gone_on(**late: Any) -> History:
    """Turn 1 is aborted; while the next message is being answered, one more request comes."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    tell.abort().end("", ended="aborted", exit_code=130)
    tell.wait(10).message("recovery")
    tell.refuse(tell.ask(1))
    tell.refuse(tell.ask(2, **late))
    tell.answer_step(1)
    return tell.end().seal()


def test_a_stopped_turn_that_goes_on_behind_the_next_message_still_spends():
    """Its requests carry its own marker; the next turn's are its own, however many."""
    history = _stopped_and_gone_on(turn=1)
    verdict = check("no_spend_after_abort", history)
    assert verdict.status == "fail"
    assert verdict.says.startswith(
        "turn 1: 1 model request (0 paid) came after the abort, 1 of them more than 3.0 s after it, the last 10."
    )
    assert [history.events[number].kind for number in verdict.evidence] == ["abort_sent", "request_arrived"]
    assert check("no_spend_after_abort", _stopped_and_gone_on()).status == "pass"


@pytest.mark.parametrize("late", [{"turn": 1, "background": "title"}, {"turn": 0}, {"turn": 2, "background": "title"}])
def test_what_a_call_behind_the_next_message_belongs_to_must_be_sure(late: dict[str, Any]):
    """A title of the whole session quotes the stopped turn as well; a call of no turn belongs to none."""
    assert check("no_spend_after_abort", _stopped_and_gone_on(**late)).status == "pass"


def test_a_back_end_that_works_on_after_the_turn_fails():
    """The requests belong to no turn any more."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    tell.give_up(after_s=90).end("", ended="gave up", exit_code=None)
    for _ in range(3):
        tell.wait(5).ask(1, turn=0)
    tell.message("recovery")
    tell.answer_step(1)
    verdict = check("no_spend_after_abort", tell.end().seal())
    assert verdict.status == "fail"
    assert verdict.says.startswith(
        "turn 1: 3 model requests (0 paid) came after the hang-up, 3 of them more than 3.0 s after it, the last 15.0"
    )


def test_requests_within_the_grace_are_counted_in_the_same_sentence():
    """One fact, one number: all that came, and how many of them came too late."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    tell.give_up(after_s=90)
    tell.reply(tell.ask(2), "On its way")
    tell.wait(5).ask(3)
    verdict = check("no_spend_after_abort", tell.end("", ended="gave up", exit_code=None).seal())
    assert verdict.says.startswith(
        "turn 1: 2 model requests (1 paid) came after the hang-up, 1 of them more than 3.0 s after it, the last 5."
    )


@pytest.mark.parametrize(
    ("asks", "says"),
    [(0, "no model request came after the abort"), (1, "1 model request (0 paid) came after the abort, none more")],
)
def test_a_stop_that_was_obeyed_is_remarked(asks: int, says: str):
    """With what came after it."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    tell.abort()
    for _ in range(asks):
        tell.ask(2)
    verdict = check("no_spend_after_abort", tell.end("", ended="aborted", exit_code=130).seal())
    assert verdict.status == "pass" and verdict.says.startswith(f"turn 1: {says}")


def test_without_an_abort_there_is_nothing_to_judge():
    """A deadline is none."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    tell.wait(121).deadline().wait(9)
    tell.ask(2)
    assert check("no_spend_after_abort", tell.end("", ended="deadline").seal()).status == "nothing"
