"""A command of the script that never ran leaves no trace, and a remark says so."""

from pathlib import Path

from wedgehog.fake_llm.reply import Reply, ToolCall
from wedgehog.harness.record.history import History
from wedgehog.harness.run.judging.remarks import lost_subagents, repairs_in, unrun_remarks
from wedgehog.harness.run.recording.placing import SentReply
from wedgehog.harness.services.beacon import wrapped
from wedgehog.harness.testing import HistoryBuilder
from wedgehog.harness.testing.history_builder import result


def told(*, runs: bool, traced: bool = True, calls: int = 1, aborted: bool = False, tool: str = "shell") -> History:
    """A turn in which a result of each call is sent; `runs`: whether the commands left a trace."""
    tell = HistoryBuilder()
    tell.message()
    tokens = tell.reply(tell.ask(1, tools=[tool]), tools=[True] * calls, traced=traced)
    results = [tell.runs(token) if runs else result(token) for token in tokens]
    if aborted:
        tell.abort()
    tell.answer_step(2, results)
    return tell.end().seal()


def test_a_command_that_never_ran_is_remarked():
    """Its result was sent all the same; the first one is named, and the others are counted."""
    assert list(unrun_remarks(told(runs=False))) == [
        "turn 1: tool call 1.1.1 (shell) never ran, though a result was sent: its command left no trace"
    ]
    (remark,) = unrun_remarks(told(runs=False, calls=3))
    assert "tool call 1.1.1 (shell) and 2 more never ran" in remark


def test_nothing_is_remarked_where_it_ran_or_could_leave_no_trace():
    """Only a command for a shell tool writes one; a turn that is stopped may answer what it did not run."""
    assert not list(unrun_remarks(told(runs=True)))
    assert not list(unrun_remarks(told(runs=False, traced=False)))
    assert not list(unrun_remarks(told(runs=False, aborted=True)))


def test_a_tool_that_does_not_exist_cannot_run():
    """The model misses its name by a letter."""
    assert not list(unrun_remarks(told(runs=False, tool="bash")))


def test_a_call_is_traced_if_its_command_says_that_it_starts():
    """A shell takes its command as a text or as a list of words; other tools leave no trace."""
    command = wrapped("ls", "wbcdf1x1x1", Path("trace"))
    given = ({"command": command}, {"cmd": ["sh", "-c", command]}, {"path": "ls"}, {"prompt": "Read it. wbcdf1x1x1"})
    sent = SentReply(Reply(tuple(ToolCall("run", it) for it in given)), [("1.1.1", "run", True)] * 4)
    assert [it.traced for it in sent.offered(4)] == [True, True, False, False]


def gathered(*, kept: bool = False, fails: bool = True, passes_on: bool = True, shown: str = "") -> History:
    """Two subagents end well; in the next turn one of two fails, and the turn with it. Then comes a third message."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), tools=[True], name="task")
    tell.reply(tell.ask(1, side="subagent 1"), "The first is empty")
    tell.reply(tell.ask(2, quotes=[2] if passes_on else []), f"Done {tell.nonce}")
    tell.end()
    tell.message()
    tell.reply(tell.ask(1), tools=[True, True], name="task")
    tell.reply(tell.ask(1, side="subagent 2"), "The second is empty")
    failing = tell.ask(1, side="subagent 3")
    if fails:
        tell.refuse(failing, 500)
    else:
        tell.reply(failing, "The third is empty")
    tell.end("", error=f"{shown}Error: the subagent failed: HTTP 500", exit_code=1)
    tell.message()
    tell.reply(tell.ask(1, quotes=[5] if kept else []), f"Done {tell.nonce}")
    return tell.end().seal()


def test_the_result_of_a_subagent_that_is_lost_by_the_error_of_another_one_is_remarked():
    """An agent may end its turn so: that is no failure."""
    assert list(lost_subagents(gathered())) == [
        "turn 2 ended in the error of subagent 3, and what subagent 2 returned is lost: "
        "no later request carries the words of call 5"
    ]


def test_nothing_is_lost_that_a_later_request_carries_or_the_user_reads():
    """Nor is it known of an agent that sums up what its subagents say."""
    assert not list(lost_subagents(gathered(kept=True)))
    assert not list(lost_subagents(gathered(fails=False)))
    assert not list(lost_subagents(gathered(passes_on=False)))
    assert not list(lost_subagents(gathered(shown="The second is empty. ")))


def test_a_repair_is_found_in_a_log_whose_lines_are_long():
    """A debug log may have a whole request in one line; reading it takes a moment, not minutes."""
    request = "word " * 400_000
    assert list(repairs_in(f"{request}\nSanitized the session\n{request}")) == ["Sanitized the session"]
