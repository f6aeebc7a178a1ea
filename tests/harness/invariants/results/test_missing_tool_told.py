"""A call of a tool that no request offers: its result has words, or is marked as an error."""

from collections.abc import Sequence

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def _judged(given: ToolResult, *, tools: Sequence[str] = ("bash",), started: bool = False) -> Verdict:
    """The model calls `shell`."""
    tell = HistoryBuilder()
    tell.message()
    (token,) = tell.reply(tell.ask(1, tools=tools), tools=[True])
    if started:
        tell.runs(token)
    tell.answer_step(2, [given])
    return check("missing_tool_told", tell.end().seal())


def test_an_empty_result_of_a_tool_that_does_not_exist_is_red():
    """The model believes that it ran."""
    verdict = _judged(result("1.1.1", chars=0, printed=False))
    assert verdict.status == "fail"
    assert verdict.says == "tool call 1.1.1 (shell): there is no such tool, and its result is empty, as if it had run"


@pytest.mark.parametrize("given", [result("1.1.1", chars=24), result("1.1.1", chars=0, is_error=True)])
def test_words_or_the_mark_of_an_error_tell_the_model(given: ToolResult):
    """One of them is enough."""
    assert _judged(given).status == "pass"


@pytest.mark.parametrize("tools", [(), ("shell",), ("Shell",)])
def test_a_tool_that_is_offered_may_give_an_empty_result(tools: Sequence[str]):
    """In any case of its letters; without any offer the agent names its tools elsewhere."""
    assert _judged(result("1.1.1", chars=0, printed=False), tools=tools).status == "nothing"


def test_an_agent_that_guesses_which_tool_was_meant_is_not_judged():
    """The command ran."""
    assert _judged(result("1.1.1", chars=0, printed=False), started=True).status == "nothing"
