"""Pairing is judged on what our validator refused on the wire."""

from wedgehog.harness.invariants import check
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def _a_tool_round(tell: HistoryBuilder) -> None:
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.answer_step(2, [tell.runs(token)])
    tell.end()


def test_a_tool_round_whose_requests_are_accepted_passes():
    """Accepted means paired: the validator looks at every request."""
    tell = HistoryBuilder()
    _a_tool_round(tell)
    assert check("tool_call_pairing", tell.seal()).status == "pass"


def test_a_refusal_for_pairing_fails_and_shows_the_providers_words():
    """An orphan in the history bricks the session."""
    tell = HistoryBuilder()
    _a_tool_round(tell)
    tell.message()
    tell.refuse(tell.ask(1), 400, pairing=True, scripted=False)
    tell.fails()
    verdict = check("tool_call_pairing", tell.seal())
    assert verdict.status == "fail"
    assert verdict.says == "request 3 (turn 2) was refused: tool_use without tool_result"


def test_a_scripted_refusal_is_no_sign_of_a_bad_history():
    """A fault asked for that 400."""
    tell = HistoryBuilder()
    tell.message()
    tell.refuse(tell.ask(1, results=[result("1.1.1")]), 400, pairing=True, scripted=True)
    tell.fails()
    assert check("tool_call_pairing", tell.seal()).status == "pass"


def test_another_refusal_by_our_validator_is_no_matter_of_pairs():
    """It may be our mistake: the judge says so in its own name."""
    tell = HistoryBuilder()
    _a_tool_round(tell)
    tell.message()
    tell.refuse(tell.ask(1), 400, scripted=False)
    tell.fails()
    assert check("tool_call_pairing", tell.seal()).status == "pass"


def test_a_run_without_tools_holds_nothing_to_judge():
    """No calls, no pairs."""
    tell = HistoryBuilder()
    tell.message()
    tell.answer_step(1)
    tell.end()
    assert check("tool_call_pairing", tell.seal()).status == "nothing"


def test_a_refusal_after_the_deadline_is_told_under_the_deadline():
    """An agent that is being stopped may send anything."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    tell.wait(121).deadline()
    tell.refuse(tell.ask(2), 400, pairing=True, scripted=False)
    tell.end("", ended="deadline", exit_code=-9)
    assert check("tool_call_pairing", tell.seal()).status == "pass"


def test_an_unpaired_request_between_turns_counts_too():
    """What an agent sends on its own account is on the wire as well."""
    tell = HistoryBuilder()
    _a_tool_round(tell)
    tell.refuse(tell.ask(1, turn=0), 400, pairing=True, scripted=False)
    assert check("tool_call_pairing", tell.seal()).status == "fail"
