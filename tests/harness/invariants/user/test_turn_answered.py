"""A message is answered in spite of the fault (where a scenario asks)."""

import re

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.turn import AgentKilled
from wedgehog.harness.testing import HistoryBuilder


def test_a_turn_that_is_lost_after_one_stall_fails_though_its_error_surfaced():
    """The next try would have worked."""
    tell = HistoryBuilder()
    tell.message()
    tell.stall(tell.ask(1))
    history = tell.fails("Error: Timeout").seal()
    assert check("turn_answered", history).status == "fail"
    assert check("error_surfaced", history).status == "pass"


def test_an_answer_at_the_second_attempt_passes():
    """Late is not lost."""
    tell = HistoryBuilder()
    tell.message()
    tell.stall(tell.ask(1))
    tell.answer_step(1)
    assert check("turn_answered", tell.end().seal()).status == "pass"


def test_aborted_turns_and_wake_ups_owe_no_answer():
    """Nobody waits for one."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    tell.abort().end("", ended="aborted", exit_code=130)
    tell.message("wake_up")
    tell.reply(tell.ask(1), "Nothing to do.")
    assert check("turn_answered", tell.end("").seal()).status == "nothing"


def test_it_cannot_be_told_where_our_validator_refused_or_answers_carry_no_nonce():
    """Both are ours to explain, not the agent's."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1), 400, scripted=False)
    assert check("turn_answered", tell.fails().seal()).status == "inconclusive"
    tell = HistoryBuilder(carries_nonces=False)
    tell.message()
    tell.reply(tell.ask(1), "Done")
    assert check("turn_answered", tell.end("All is well.").seal()).status == "inconclusive"


@pytest.mark.parametrize(("whom", "status"), [("tree", "nothing"), ("leader", "nothing"), ("tool", "fail")])
def test_a_service_that_tells_its_caller_of_the_signal_owes_no_answer(whom: str, status: str):
    """The error reaches the caller before the process ends, so the turn ends by itself."""
    tell = HistoryBuilder()
    tell.message()
    tell.ask(1)
    tell.add(AgentKilled(turn=tell.turn, signal="SIGTERM", whom=whom, pids=(4711,)))
    tell.end("", error="Error: interrupted", status=409)
    assert check("turn_answered", tell.seal()).status == status


def test_a_tool_that_the_turn_waited_for_until_its_end_is_named():
    """The agent's own time limit ended the turn, and not the tool."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    found = check("turn_answered", tell.fails("Error: aborted").seal())
    said = r"turn 1 was not answered: .*Error: aborted; tool call 1\.1\.1 \(\w+\) was still open after [\d.]+ m?s"
    assert re.fullmatch(said, found.says)


def test_a_call_that_was_answered_whole_is_no_evidence_of_an_unanswered_turn():
    """The first call asked for a tool; the second one was cut."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    cut = tell.ask(2, results=[tell.runs(token)])
    tell.cut(cut)
    history = tell.fails("Error: the connection broke").seal()
    verdict = check("turn_answered", history)
    first, second = (call.arrived.id for call in history.calls)
    assert verdict.status == "fail" and second in verdict.evidence and first not in verdict.evidence


@pytest.mark.parametrize(("purpose", "status"), [("other", "pass"), ("title", "fail")])
def test_a_check_may_run_beside_the_first_request(purpose: str, status: str):
    """It is tried again while the reply of the conversation has long come; without it the agent does not answer."""
    tell = HistoryBuilder()
    tell.message()
    check_call = tell.ask(1, background=purpose)
    main = tell.ask(1)
    tell.refuse(check_call, 500)
    tell.reply(main, f"Done {tell.nonce}")
    tell.refuse(tell.ask(1, background=purpose), 500)
    failed = tell.fails("Error: the message could not be checked").seal()
    assert check("turn_answered", failed, plan_errors=True).status == status


@pytest.mark.parametrize(
    ("purpose", "enough", "main", "status"),
    [
        ("structured", True, False, "pass"),
        ("classification", True, False, "pass"),
        ("structured", False, False, "fail"),
        ("title", True, False, "fail"),
        ("structured", True, True, "fail"),
    ],
)
def test_a_scenario_may_allow_an_error_where_a_plan_or_a_check_failed(
    purpose: str, enough: bool, main: bool, status: str
):
    """An agent may refuse what it could not check; without a title it can answer, and after a plan it must."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1, background=purpose), 500)
    if main:
        tell.reply(tell.ask(1), "")
    assert check("turn_answered", tell.fails("Error: the check failed").seal(), plan_errors=enough).status == status


@pytest.mark.parametrize(
    ("stop", "words", "status"),
    [
        ("filter", "Error: the prompt was blocked: OTHER", "pass"),
        ("filter", "Error: list index out of range", "fail"),
        ("end", "Error: the prompt was blocked: OTHER", "fail"),
    ],
)
def test_an_error_is_enough_where_a_filter_stopped_the_last_reply(stop: str, words: str, status: str):
    """The same request may be stopped again; its user must be told that it was a filter."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), "", stop=stop)
    assert check("turn_answered", tell.fails(words).seal()).status == status


def test_a_filter_that_stopped_an_earlier_reply_excuses_nothing():
    """The last one came, and was empty."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), "", stop="filter")
    tell.reply(tell.ask(1), "")
    assert check("turn_answered", tell.fails("Error: the prompt was blocked: OTHER").seal()).status == "fail"


@pytest.mark.parametrize(
    ("wire", "words", "status"),
    [
        ("gemini", "Error: the reply was cut at the limit of output tokens: I clean up.", "pass"),
        ("ollama", "Error: the model stopped at max_tokens", "pass"),
        ("gemini", "Error: list index out of range", "fail"),
        ("anthropic", "Error: the reply was cut at the limit of output tokens: I clean up.", "fail"),
    ],
)
def test_an_error_is_enough_where_the_wire_shows_nothing_of_a_call_that_was_cut(wire: str, words: str, status: str):
    """The agent reads words that break off, and no call of whose end it could tell the model."""
    tell = HistoryBuilder()
    tell.wire = wire
    tell.message()
    tell.reply(tell.ask(1), "I clean up.", tools=[False], stop="max_tokens")
    assert check("turn_answered", tell.fails(words).seal()).status == status


@pytest.mark.parametrize(
    ("says", "slows", "asked", "status"),
    [
        ("Error: Request timed out.", True, True, "pass"),
        ("Error: Request timed out.", True, False, "fail"),
        ("Error: Request timed out.", False, True, "fail"),
        ("Error: unexpected end of JSON", True, True, "fail"),
    ],
)
def test_a_slow_reply_may_end_at_the_agents_own_timer_where_a_scenario_says_so(
    says: str, slows: bool, asked: bool, status: str
):
    """A story of small pieces is about how they are put together, and not about how long an agent waits."""
    tell = HistoryBuilder()
    tell.message()
    call = tell.ask(1)
    fired = {"fault": 0, "name": "slicer", "turn": 1, "step": 1, "attempt": 1, "call": None, "proof": "p"}
    tell.add(FaultFired(link="llm", slows=slows, **fired))  # type: ignore[arg-type]
    tell.reply(call, "Its reply", how="hung up")
    history = tell.fails(says).seal()
    assert check("turn_answered", history, slow_errors=asked).status == status
