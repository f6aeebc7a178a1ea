"""What a tool brought is not lost with the process that had it."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result

LOST = result("1.1.1", is_error=True, printed=False)


def _after_one_tool() -> tuple[HistoryBuilder, ToolResult]:
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    return tell, tell.runs(token)


def _then(tell: HistoryBuilder, *results: ToolResult):
    tell.message()
    tell.answer_step(1, results)
    return check("result_durable", tell.end().seal())


def test_a_result_that_was_sent_is_there_again():
    """In the first request after the kill."""
    tell, carried = _after_one_tool()
    tell.ask(2, results=[carried])
    verdict = _then(tell.kill(), carried)
    assert (verdict.status, verdict.says) == ("pass", "the result of tool call 1.1.1 was still there after the kill")


@pytest.mark.parametrize("left", [(), (LOST,)])
def test_a_result_that_was_sent_and_is_gone_fails(left: tuple[ToolResult, ...]):
    """A repaired history that calls it lost has lost it."""
    tell, carried = _after_one_tool()
    tell.ask(2, results=[carried])
    verdict = _then(tell.kill(), *left)
    assert (verdict.status, verdict.says) == (
        "fail",
        "request 3, the first one after the kill, does not carry the result of tool call 1.1.1 (sent before the kill)",
    )


@pytest.mark.parametrize("left", [(), (LOST,)])
def test_a_result_that_was_only_saved_and_is_gone_fails(left: tuple[ToolResult, ...]):
    """Its session file held it."""
    tell, _ = _after_one_tool()
    verdict = _then(tell.kill(saved=["1.1.1"]), *left)
    assert verdict.status == "fail" and verdict.says.endswith("1.1.1 (saved before the kill)")


def test_a_result_that_was_neither_sent_nor_saved_is_nobodys_promise():
    """It was lost with the agent."""
    tell, _ = _after_one_tool()
    assert _then(tell.kill(), LOST).status == "nothing"


def test_a_result_that_the_agent_had_trimmed_away_before_is_not_missed():
    """Though its file may still hold it."""
    tell, carried = _after_one_tool()
    (second,) = tell.reply(tell.ask(2, results=[carried]), tools=[True])
    tell.ask(3, results=[result(second)])
    assert _then(tell.kill(saved=["1.1.1", "1.2.1"]), result("1.2.1")).status == "pass"


def test_an_error_that_was_sent_may_be_an_error_again():
    """It was one before the kill."""
    tell, _ = _after_one_tool()
    tell.ask(2, results=[LOST])
    assert _then(tell.kill(), LOST).status == "pass"


def test_what_was_on_its_way_when_the_agent_died_is_no_request_after_it():
    """Only that of the next message is."""
    tell, carried = _after_one_tool()
    tell.ask(2, results=[carried])
    tell.kill()
    tell.ask(2, results=[carried], turn=1)
    assert _then(tell).status == "fail"


def test_a_result_that_could_not_be_matched_to_its_call_makes_it_inconclusive():
    """It may be the missing one."""
    tell, carried = _after_one_tool()
    tell.ask(2, results=[carried])
    assert _then(tell.kill(), ToolResult(id="x", chars=5)).status == "inconclusive"


def test_an_agent_that_asks_nothing_after_the_kill_is_judged_elsewhere():
    """Nothing could carry it."""
    tell, carried = _after_one_tool()
    tell.ask(2, results=[carried])
    tell.kill().message()
    assert check("result_durable", tell.fails().seal()).status == "inconclusive"


def test_without_a_kill_there_is_nothing_to_judge():
    """Nothing could get lost."""
    tell, carried = _after_one_tool()
    tell.answer_step(2, [carried])
    assert check("result_durable", tell.end().seal()).status == "nothing"


def test_a_kill_of_the_tool_alone_is_no_kill_of_the_agent():
    """Its turn goes on."""
    tell, carried = _after_one_tool()
    tell.ask(2, results=[carried])
    assert _then(tell.kill("tool"), *[]).status == "nothing"
