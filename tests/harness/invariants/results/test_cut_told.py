"""Where the end of a command's output is cut off, the result says so."""

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result

CALL = "1.1.1"


def _cut(*signs: str, is_error: bool = False) -> ToolResult:
    return result(CALL, chars=200, printed=False, signs=("number", *signs), prints_first=True, is_error=is_error)


@pytest.mark.parametrize(
    ("told", "code", "status"),
    [
        (_cut(), 0, "fail"),
        (_cut("part"), 0, "pass"),
        (_cut("elsewhere"), 0, "pass"),
        (_cut("foreign"), 0, "pass"),
        (_cut(is_error=True), 0, "pass"),
        (_cut(), 7, "nothing"),
        (result(CALL, signs=("number",), prints_first=True), 0, "pass"),
        (result(CALL, printed=False, signs=(), prints_first=False), 0, "pass"),
        (result(CALL, printed=False, signs=(), prints_first=None), 0, "pass"),
        (result(CALL, printed=False, prints_first=True), 0, "nothing"),
    ],
)
def test_a_result_without_the_end_of_its_output_has_a_mark(told: ToolResult, code: int, status: str):
    """A result that does not begin as the output may be a summary; a whole one needs no mark."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.starts(CALL)
    tell.done(CALL, code)
    tell.answer_step(2, [told])
    assert check("cut_told", tell.end().seal()).status == status


@pytest.mark.parametrize(
    ("later", "status"),
    [
        (result(CALL, chars=70, printed=False, signs=("failed", "stopped"), prints_first=False), "fail"),
        (result(CALL, chars=20, printed=False, signs=(), prints_first=False), "pass"),  # cleared
        (result(CALL, chars=70, printed=False, signs=("stopped", "part"), prints_first=False), "pass"),
        (result(CALL, signs=("failed", "stopped"), prints_first=True), "pass"),  # the output itself says so
    ],
)
def test_a_result_that_was_sent_is_not_called_interrupted_later(later: ToolResult, status: str):
    """An agent that lost it in a failed turn closes the call so; the model then runs the command again."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.starts(CALL)
    tell.done(CALL, 0)
    tell.refuse(tell.ask(2, results=[result(CALL, signs=(), prints_first=True)]), 500)
    tell.fails()
    tell.message()
    tell.reply(tell.ask(1, results=[later]), f"A bird. {tell.nonce}")
    assert check("output_told", tell.end().seal()).status == status


@pytest.mark.parametrize(
    ("signs", "code", "after_s", "status"),
    [
        (("failed", "stopped", "was_stopped"), 0, 0.5, "fail"),
        (("failed", "stopped"), 0, 0.5, "pass"),
        (("failed", "stopped", "was_stopped"), 137, 0.5, "nothing"),
        (("failed", "stopped", "was_stopped"), 0, 12.0, "pass"),  # something that it started held its output open
    ],
)
def test_a_command_that_ended_well_is_not_called_stopped(
    signs: tuple[str, ...], code: int, after_s: float, status: str
):
    """Its output is there, and words that it was stopped at its time limit: the model runs it again."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.starts(CALL)
    tell.done(CALL, code)
    tell.wait(after_s)
    tell.answer_step(2, [result(CALL, signs=signs, prints_first=True, is_error=True)])
    verdict = check("output_told", tell.end().seal())
    assert verdict.status == status
    if status == "fail":
        assert verdict.says == "tool call 1.1.1 (shell) ended with exit code 0, and its result says that it was stopped"


def test_after_a_kill_a_result_may_be_gone():
    """It was not stored yet."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.starts(CALL)
    tell.done(CALL, 0)
    tell.ask(2, results=[result(CALL, signs=(), prints_first=True)])
    tell.add(FaultFired(fault=0, name="kill", link="agent", turn=1, step=2, attempt=1, call=None, proof="x"))
    tell.kill()
    tell.message()
    later = result(CALL, chars=70, printed=False, signs=("failed", "stopped"), prints_first=False)
    tell.reply(tell.ask(1, results=[later]), f"A bird. {tell.nonce}")
    assert check("output_told", tell.end().seal()).status == "nothing"


def _without(*signs: str, chars: int = 44) -> ToolResult:
    return result(CALL, chars=chars, printed=False, signs=signs, prints_first=False)


@pytest.mark.parametrize(
    ("told", "code", "status"),
    [
        (_without("failed", "number", "part"), 0, "fail"),
        (_without(chars=0), 0, "fail"),
        (_without("elsewhere"), 0, "pass"),
        (_without("foreign"), 0, "pass"),
        (_without(chars=200), 0, "pass"),
        (_without(), 7, "nothing"),
        (result(CALL, signs=(), prints_first=True), 0, "pass"),
        (result(CALL, printed=False, signs=(), prints_first=None), 0, "nothing"),
    ],
)
def test_a_short_result_has_the_output_or_says_where_it_is(told: ToolResult, code: int, status: str):
    """A longer one may be a summary; where it is not known what the command prints first, nothing is judged."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True])
    tell.starts(CALL)
    tell.done(CALL, code)
    tell.answer_step(2, [told])
    assert check("output_told", tell.end().seal()).status == status
