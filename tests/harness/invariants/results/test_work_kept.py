"""What siblings have done is not lost when one of them fails."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.history import History
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result

FAST, SLOW = "1.1.1", "1.1.2"


def _one_done_one_stuck() -> HistoryBuilder:
    tell = HistoryBuilder()
    tell.message()
    fast, slow = tell.reply(tell.ask(1), tools=[True, True])
    tell.runs(fast)
    tell.starts(slow)
    return tell


def _next_request(*results: ToolResult) -> History:
    tell = _one_done_one_stuck()
    tell.answer_step(2, results)
    return tell.end().seal()


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ([result(FAST), result(SLOW, is_error=True)], "pass"),
        ([result(SLOW, is_error=True)], "fail"),
        ([], "fail"),
        ([result(""), result(SLOW, is_error=True)], "inconclusive"),
    ],
)
def test_the_finished_siblings_result_is_in_the_next_request(results: Sequence[ToolResult], status: str):
    """A result that could not be matched to its call may be the one that is missing."""
    assert check("work_kept", _next_request(*results)).status == status


def test_the_output_of_the_failed_call_does_not_stand_for_that_of_its_sibling():
    """As in an agent that takes one failure for all, and quotes it in each result."""
    quoted = replace(result(FAST), prints=SLOW)
    verdict = check("work_kept", _both_ended(quoted, result(SLOW), 0, 3))
    assert (verdict.status, verdict.says) == (
        "fail",
        "tool call 1.1.1 finished, but the next request (2) has the output of tool call 1.1.2 in its place",
    )


@pytest.mark.parametrize(("printed", "status"), [(False, "fail"), (True, "nothing")])
def test_a_call_that_was_not_waited_for_has_failed_where_no_wire_marks_it(printed: bool, status: str):
    """A time limit for all calls of a reply takes the result of the quick one with it."""
    late = [result(token, chars=37, printed=False) for token in (FAST, SLOW)]
    late[1] = replace(late[1], printed=printed)
    tell = HistoryBuilder()
    tell.message()
    fast, slow = tell.reply(tell.ask(1), tools=[True, True])
    tell.starts(fast)
    tell.done(fast, 0)
    tell.starts(slow)
    tell.answer_step(2, late)
    assert check("work_kept", tell.end().seal()).status == status


def _both_ended(fast: ToolResult, slow: ToolResult, *codes: int | None) -> History:
    """Two commands that came to their ends with these exit codes, and what the next request says of them."""
    tell = HistoryBuilder()
    tell.message()
    for token, code in zip(tell.reply(tell.ask(1), tools=[True, True]), codes, strict=True):
        tell.starts(token)
        tell.done(token, code)
    tell.answer_step(2, [fast, slow])
    return tell.end().seal()


@pytest.mark.parametrize(
    ("fast", "status"),
    [
        (result(FAST), "pass"),
        (result(FAST, is_error=True), "pass"),
        (result(FAST, chars=5000, printed=False), "pass"),
        (result(FAST, chars=43, printed=False), "fail"),
        (result(FAST, is_error=True, printed=False), "fail"),
        (result("2.1.1"), "fail"),
    ],
)
def test_a_result_that_only_tells_of_an_error_is_lost_where_its_command_went_well(fast: ToolResult, status: str):
    """`cancelled because a sibling failed` is not what it printed; a capped result is still some of it."""
    verdict = check("work_kept", _both_ended(fast, result(SLOW, is_error=True), 0, 1))
    assert verdict.status == status
    if status == "fail":
        assert verdict.says.startswith(f"tool call {FAST} finished, but the next request (2) does not carry")


@pytest.mark.parametrize(
    ("codes", "status"),
    [((0, 1), "fail"), ((0, 0), "nothing"), ((1, 1), "nothing"), ((1, 0), "pass"), ((None, None), "nothing")],
)
def test_the_exit_code_tells_which_sibling_failed_whatever_its_result_is_called(
    codes: tuple[int | None, int | None], status: str
):
    """An agent may give a failed command back as a plain result, and lose what the other one did."""
    lost = result(FAST, is_error=True, printed=False)
    assert check("work_kept", _both_ended(lost, result(SLOW), *codes)).status == (
        status if codes != (None, None) else "pass"
    )


def test_where_no_sibling_failed_there_is_nothing_to_judge():
    """Other invariants look after results in general."""
    tell = HistoryBuilder()
    tell.message()
    tokens = tell.reply(tell.ask(1), tools=[True, True])
    tell.answer_step(2, [tell.runs(token) for token in tokens])
    assert check("work_kept", tell.end().seal()).status == "nothing"


def test_where_nothing_had_finished_nothing_could_be_lost():
    """Both failed."""
    tell = HistoryBuilder()
    tell.message()
    tokens = tell.reply(tell.ask(1), tools=[True, True])
    tell.answer_step(2, [tell.runs(token, is_error=True) for token in tokens])
    assert check("work_kept", tell.end().seal()).status == "nothing"


def _ended_first(*results: ToolResult) -> History:
    tell = _one_done_one_stuck()
    tell.fails("Error: timed out").message()
    tell.answer_step(1, results)
    return tell.end().seal()


def test_a_turn_that_ended_first_is_reported_and_judged_only_when_asked():
    """On the next turn's first request."""
    lost, kept = _ended_first(), _ended_first(result(FAST), result(SLOW, is_error=True))
    verdict = check("work_kept", lost)
    assert verdict.status == "nothing"
    assert verdict.says.startswith(
        "not judged, because the turn was over and the scenario does not ask for work_kept: "
    )
    assert "tool call 1.1.1 finished, but the next turn's first request" in verdict.says
    assert check("work_kept", lost, asked=True).status == "fail"
    assert check("work_kept", kept, asked=True).status == "pass"


def test_asked_of_a_turn_that_no_other_followed_it_is_inconclusive():
    """There is no request to look at."""
    history = _one_done_one_stuck().fails("Error: timed out").seal()
    assert check("work_kept", history, asked=True).status == "inconclusive"
    assert check("work_kept", history).status == "nothing"


@pytest.mark.parametrize(
    ("code", "struck", "later", "status"),
    [
        (3, False, (), "fail"),
        (3, False, (result(FAST), result(SLOW, is_error=True)), "pass"),
        (3, True, (), "nothing"),
        (None, False, (), "nothing"),
    ],
)
def test_an_agent_that_ends_its_turn_because_a_command_failed_owes_the_siblings_result(
    code: int | None, struck: bool, later: tuple[ToolResult, ...], status: str
):
    """Without any fault, a command that exits with 3 is no reason to lose the other one's work."""
    tell = HistoryBuilder()
    tell.message()
    fast, slow = tell.reply(tell.ask(1), tools=[True, True])
    tell.starts(fast)
    tell.done(fast, 0)
    if code is not None:
        tell.starts(slow)
        tell.done(slow, code)
    if struck:
        tell.connection_refused()
    tell.fails("Error: a command failed").message()
    tell.answer_step(1, later)
    verdict = check("work_kept", tell.end().seal())
    assert verdict.status == status
    if status == "fail":
        assert verdict.says.startswith("turn 1 ended after a tool call had failed; tool call 1.1.1 finished, but")


@pytest.mark.parametrize(("carried", "status"), [([FAST], "pass"), ([], "fail")])
def test_a_call_with_broken_arguments_takes_no_result_of_its_sibling_with_it(carried: list[str], status: str):
    """The agent ends the turn because of it, and the next turn knows what was done."""
    tell = HistoryBuilder()
    tell.message()
    fast, _ = tell.reply(tell.ask(1), tools=[True, False])
    tell.runs(fast)
    tell.done(fast, 0)
    tell.fails("Error: the arguments are no JSON object")
    tell.message()
    tell.answer_step(1, [result(token) for token in carried])
    assert check("work_kept", tell.end().seal()).status == status


def test_an_abort_ends_the_turn_for_its_tools_too():
    """What the agent sends while it is being stopped decides nothing."""
    tell = _one_done_one_stuck()
    tell.abort()
    tell.refuse(tell.ask(2, results=[result(SLOW, is_error=True)]))
    tell.end("", ended="aborted", exit_code=130)
    assert check("work_kept", tell.seal()).status == "nothing"
