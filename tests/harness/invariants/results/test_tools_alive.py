"""After healing the tools work, and the output of a command that worked reaches the model."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from wedgehog.harness.invariants import check
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import CpuWait, CpuWaitSeen
from wedgehog.harness.record.events.service import ToolAsked
from wedgehog.harness.record.verdict import Verdict
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result

LOST = {"is_error": True, "printed": False}


def recovered(*rounds: Sequence[ToolResult] | None, tools: Sequence[str] = ("shell", "weather")) -> Verdict:
    """A recovery whose rounds carry these results; None: the tool never ran."""
    tell = HistoryBuilder(recovery_tools=tuple(tools))
    tell.message("recovery")
    carried: tuple[ToolResult, ...] = ()
    for step, given in enumerate(rounds, start=1):
        (token,) = tell.reply(tell.ask(step, results=carried), tools=[True])
        if given is not None:
            tell.runs(token)
        carried += tuple(given or (result(token, **LOST),))
    tell.answer_step(len(rounds) + 1, carried)
    return check("tools_alive", tell.end().seal())


def test_a_recovery_with_a_working_round_of_each_tool_passes():
    """Of the shell and of our host."""
    assert recovered([result("1.1.1")], [result("1.2.1")]).status == "pass"


@pytest.mark.parametrize(
    ("rounds", "says"),
    [
        ((), "after healing the shell is gone: request 1 does not offer it"),
        (
            ([result("1.1.1")],),
            "after healing the tool weather of our host (MCP) is gone: request 2 does not offer it",
        ),
        ((None,), "after healing the shell does not work: tool call 1.1.1 (shell) never ran"),
        (
            ([result("1.1.1", **LOST)],),
            "after healing the shell does not work: tool call 1.1.1 (shell) ran, and no request carries its output",
        ),
        (
            ([result("1.1.1")], [result("1.2.1", **LOST)]),
            "after healing the tool weather of our host (MCP) does not work: "
            "tool call 1.2.1 (shell) ran, and no request carries its output",
        ),
    ],
)
def test_an_answer_without_the_tools_is_no_recovery(rounds: tuple[Sequence[ToolResult] | None, ...], says: str):
    """The tool is gone from the requests, does not run, or its result is an error."""
    verdict = recovered(*rounds)
    assert (verdict.status, verdict.says) == ("fail", says)


def test_output_that_is_marked_as_an_error_has_reached_the_model_after_healing():
    """The tool has run, and the model reads what it printed; in every other turn that is enough too."""
    assert recovered([result("1.1.1", is_error=True)], [result("1.2.1")]).status == "pass"


@pytest.mark.parametrize(("purpose", "status"), [("compact", "nothing"), ("title", "fail")])
def test_a_summary_may_have_what_a_tool_printed_after_healing(purpose: str, status: str):
    """The conversation became too long just then; a title has nothing of it."""
    tell = HistoryBuilder(recovery_tools=("shell",))
    tell.message("recovery")
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.runs(token)
    tell.reply(tell.ask(1, background=purpose), "It is alive.")
    tell.answer_step(2)
    assert check("tools_alive", tell.end().seal()).status == status


@pytest.mark.parametrize(("waited_s", "status"), [(0.1, "fail"), (3.0, "inconclusive")])
def test_a_server_that_was_not_asked_in_time_on_a_busy_machine_is_no_lost_tool(waited_s: float, status: str):
    """An agent gives the list of tools some seconds, before its first request."""
    tell = HistoryBuilder(recovery_tools=("weather",))
    tell.message("recovery")
    tell.wait(4.0)
    tell.add(CpuWaitSeen(turn=1, waits=(CpuWait(0.0, 4.0, waited_s, 0.0, 0.0),)))
    tell.answer_step(1)
    verdict = check("tools_alive", tell.end().seal())
    assert verdict.status == status and verdict.says.startswith(
        "after healing the tool weather of our host (MCP) is gone"
    )


def test_a_tool_that_fails_at_once_met_no_timer_however_busy_the_machine_is():
    """The whole turn was shorter than any time limit of an agent."""
    tell = HistoryBuilder(recovery_tools=("weather",))
    tell.message("recovery")
    tell.wait(0.3)
    tell.add(CpuWaitSeen(turn=1, waits=(CpuWait(0.0, 0.3, 0.25, 0.0, 0.0),)))
    tell.answer_step(1)
    assert check("tools_alive", tell.end().seal()).status == "fail"


def test_an_agent_whose_control_run_showed_no_tool_owes_none():
    """Nor is a recovery judged that was not answered: other invariants do that."""
    assert recovered(tools=()).status == "nothing"
    tell = HistoryBuilder(recovery_tools=("shell",))
    tell.message("recovery")
    tell.refuse(tell.ask(1))
    assert check("tools_alive", tell.fails().seal()).status == "nothing"


def worked(*results: ToolResult, took_s: float = 0.1, exit_code: int = 0, tools: Sequence[str] = ("shell",)) -> Verdict:
    """A command of the first turn ends so, and the next request carries these results."""
    tell = HistoryBuilder(recovery_tools=tuple(tools))
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    tell.wait(took_s).done(token, exit_code=exit_code)
    tell.answer_step(2, results)
    return check("tools_alive", tell.end().seal())


@pytest.mark.parametrize(
    ("carried", "status"),
    [
        ([result("1.1.1")], "pass"),
        ([result("1.1.1", chars=20_000, printed=False)], "pass"),
        ([result("1.1.1", is_error=True)], "pass"),
        ([], "fail"),
        ([result("1.1.1", chars=11, printed=False)], "fail"),
        ([result("1.1.1", **LOST)], "fail"),
        ([result("1.1.1", chars=80, printed=False, signs=["part"])], "pass"),
        ([result("1.1.1", chars=80, printed=False, signs=["bare"])], "fail"),
        ([result("1.1.1", chars=80, signs=["bare"])], "pass"),
        ([result("1.1.1", chars=80, printed=False, signs=["bare"], prints_first=True)], "pass"),
        ([result("", printed=False)], "nothing"),
    ],
)
def test_the_output_of_a_command_that_worked_is_in_the_next_request(carried: list[ToolResult], status: str):
    """Whole or shortened; an error or no text in its place is dropped work. A result of an unknown call may be it."""
    assert worked(*carried).status == status


def test_a_result_that_says_only_that_a_command_worked_is_told_so():
    """With what stands in the place of the output."""
    says = "tool call 1.1.1 (shell) ended well, and its output never reached the model: request 2 says only that it"
    verdict = worked(result("1.1.1", chars=30, printed=False, signs=["part", "bare"]), tools=())  # never seen before
    assert verdict.says == f"{says} worked, or that there was no output (30 characters)"


@pytest.mark.parametrize(
    ("again", "refused", "answered", "status"),
    [
        (result("1.1.1"), 503, True, "pass"),
        (result("1.1.1", chars=0, printed=False), 503, True, "fail"),
        (result("1.1.1", **LOST), 429, True, "fail"),
        (result("1.1.1", chars=80, printed=False), 503, True, "pass"),
        (result("1.1.1", chars=0, printed=False), 400, True, "pass"),
        (result("1.1.1", chars=0, printed=False), 413, True, "pass"),
        (result("1.1.1", chars=0, printed=False), 503, False, "pass"),
    ],
)
def test_a_retry_carries_the_output_too(again: ToolResult, refused: int, answered: bool, status: str):
    """Unless the provider refused its content or its size; a retry that no model answered does no harm."""
    tell = HistoryBuilder(recovery_tools=("shell",))
    tell.message()
    (token,) = tell.reply(tell.ask(1), tools=[True])
    tell.starts(token)
    tell.done(token, exit_code=0)
    tell.refuse(tell.ask(2, results=[result(token)]), refused)
    second = tell.ask(2, results=[again])
    if answered:
        tell.reply(second, "Done.")
    else:
        tell.refuse(second, 503)
    verdict = check("tools_alive", tell.end().seal())
    assert verdict.status == status
    if status == "fail":
        assert verdict.says == (
            "tool call 1.1.1 (shell) ended well, and its output is gone in a retry: "
            f"request 3 sends an error or nothing in its place ({again.chars} characters)"
        )


def test_the_output_of_another_command_does_not_stand_for_its_own():
    """Two results under each other's calls are worse than none: the model takes both for true."""
    verdict = worked(replace(result("1.1.1"), prints="1.1.2"))
    assert verdict.status == "fail" and verdict.says.endswith(
        "request 2 has the output of tool call 1.1.2 in its place"
    )


def test_a_command_that_fails_takes_long_or_belongs_to_no_known_tool_is_not_judged():
    """An agent has its own limits, and only what the control run showed is expected."""
    assert worked(exit_code=1).status == "nothing"
    assert worked(took_s=8).status == "nothing"
    assert worked(tools=()).status == "nothing"


def test_what_a_fault_a_background_call_or_the_end_of_the_turn_took_is_not_judged():
    """A struck tool, a summary in between, a turn that goes no further."""
    for case in ("fault", "summary", "end"):
        tell = HistoryBuilder(recovery_tools=("shell",))
        tell.message()
        (token,) = tell.reply(tell.ask(1), tools=[True])
        tell.starts(token)
        tell.done(token, exit_code=0)
        if case == "fault":
            struck = {"turn": 1, "step": 1, "attempt": 1, "call": None, "proof": "x"}
            tell.add(FaultFired(fault=0, name="late_result", link="tool:mcp", **struck))
        if case == "summary":
            tell.reply(tell.ask(2, background="summary"), "So far so good.")
        if case != "end":
            tell.answer_step(2)
        tell.end()
        assert check("tools_alive", tell.seal()).status == "nothing", case


def test_the_output_of_a_tool_of_our_host_is_dropped_too():
    """As that of a command."""
    for carried, status in ((result("1.1.1"), "pass"), (result("1.1.1", **LOST), "fail")):
        tell = HistoryBuilder(recovery_tools=("weather",))
        tell.message()
        (token,) = tell.reply(tell.ask(1), tools=[True])
        tell.add(ToolAsked(tool="weather", token=token, server=1))
        tell.starts(token)
        tell.done(token, exit_code=0)
        tell.answer_step(2, [carried])
        assert check("tools_alive", tell.end().seal()).status == status


def test_one_output_under_several_calls_is_told_so():
    """Results of a wire without ids are known by what they hold."""
    tell = HistoryBuilder(recovery_tools=("shell",))
    tell.message()
    tokens = tell.reply(tell.ask(1), tools=[True, True])
    for token in tokens:
        tell.starts(token)
        tell.done(token, exit_code=0)
    tell.answer_step(2, [result(tokens[1]), result(tokens[1])])
    says = check("tools_alive", tell.end().seal()).says
    assert says.endswith("its output never reached the model: request 2 has the output of tool call 1.1.2 2 times")
