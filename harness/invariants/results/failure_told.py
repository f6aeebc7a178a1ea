"""The failure of a tool reaches the model: that it failed, and what it printed before."""

from collections.abc import Iterator

from wedgehog.harness.invariants.overload import unless_slowed
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import blocked, name_of_call, tool_uses_of
from wedgehog.harness.invariants.subagents.subagent_failure_told import SilentSubagent, silent_subagents, was_ended
from wedgehog.harness.invariants.tool_results import (
    ANOTHER_FORM_CHARS,
    LARGEST_OWN_CODE,
    QUICK_S,
    disturbed,
    may_be_summarized,
    next_request,
    reply_is_sound,
)
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.events.service import ToolAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed
from wedgehog.harness.record.views import ToolUse, Turn

A_CODE_OF_FAILURE = 2
"""With 1 a command often only says no, as `grep` and `diff` do."""
LONG_ENOUGH_S = 1.0
"""Real seconds after which an agent has read what a command printed at its start."""
EMPTY_CHARS = 20
"""A result so short, such as "(no output)", has no room for the news that its command was stopped."""
TELL_OF_FAILURE = frozenset(("failed", "number", "stopped", "elsewhere", "foreign"))
"""Signs of a result that does not look like a success."""


@invariant("failure_told", level="strict")
def failure_told(history: History) -> Iterator[Verdict]:
    """A later request of the turn says that a tool failed, and has what the tool had printed.

    A model that reads only "the tool failed" cannot repair anything. One that does not read that the tool failed goes
    on as if it had worked. Judged in four cases, where no fault struck the tool and a request follows in the turn.

    First, a command that printed something ended within 2 s with an exit code of its own (1 to 125), or a tool of our
    host (MCP) gave an error. Its words must be in its result. With a code of 2 or more the result must also tell of a
    failure: by its error mark, a number, or a word such as "exit", "failed", "error" or "status".

    Second, the agent stopped a command at a time limit, at least 1 s after it had begun, and its result says so. What
    the command had printed at its start must be in the result. If a command died sooner, by a signal for example, a
    result with only what it had printed is red: it needs a word or a number that tells.

    Third, the last call of a subagent failed without a word, and each delegating call of the reply had one subagent.
    The result of one of these calls must tell of a failure, or of work that still goes on. Where the model itself said
    nothing to the subagent, the result must not be empty.

    Fourth, a subagent asked its model five times or more, and was ended at a limit: its last reply asks for a tool, and
    no request has the result. Red if its model had said nothing, and no result tells of a limit or a failure, such as
    "Task completed". Red too if all results tell of a success, and its model had said nothing of the kind. The words
    that it had said are left to its parent's model.

    Fix: Send what a failed or stopped tool printed, its standard error too, as its result, with the exit code or the
    reason beside it. Send the error of a subagent as its result, and say if it was ended at a limit.
    """
    for turn in history.turns:
        if not disturbed(history, turn):
            yield from _of_turn(history, turn)
        for silent in silent_subagents(history, turn):
            yield _of_a_subagent(silent)
        for ended in silent_subagents(history, turn, was_ended):
            yield _of_an_ended_one(ended)


def _of_turn(history: History, turn: Turn) -> Iterator[Verdict]:
    for use in tool_uses_of(turn):
        if not reply_is_sound(history, turn, use):
            continue
        if _failed_by_itself(history, use):
            yield from _of_a_failed_one(history, turn, use)
        elif len(use.started) == 1 and not use.started[0].background:
            yield from _of_a_stopped_one(history, turn, use)


def _of_a_failed_one(history: History, turn: Turn, use: ToolUse) -> Iterator[Verdict]:
    following = next_request(turn, [use])
    carried = use.carried
    if following is None or not carried or blocked(history, use, following):
        return
    if may_be_summarized(history, use.reply, following):
        return
    if not any(it.printed or it.in_text or it.chars >= ANOTHER_FORM_CHARS for it in carried):
        says = f"{name_of_call(use)} failed, and what it printed is not in its result ({carried[0].chars} characters)"
        evidence = (use.reply, use.done[0], following)
        if _of_our_host(history, use) and not any("stopped" in (it.signs or ("stopped",)) for it in carried):
            yield fail(says, evidence)  # it came whole in one message: no pipe was read for too short a time
        else:
            yield unless_slowed(history, says, evidence, use.reply.at_s, following.at_s)
    elif (use.done[0].exit_code or 0) >= A_CODE_OF_FAILURE and not any(map(_tells_of_failure, carried)):
        says = f"{name_of_call(use)} failed with exit code {use.done[0].exit_code}, and nothing in its result says so"
        yield fail(says, (use.reply, use.done[0], following))
    else:
        yield passed(because=f"the result of {name_of_call(use)} tells of its failure")


def _of_our_host(history: History, use: ToolUse) -> bool:
    return any(asked.token == use.token for asked in history.of(ToolAsked))


def _tells_of_failure(result: ToolResult) -> bool:
    """Whether a result says, or may say, that all is not well; one whose signs were not recorded may."""
    return not result.signs_known or result.is_error or not TELL_OF_FAILURE.isdisjoint(result.signs or ())


def _failed_by_itself(history: History, use: ToolUse) -> bool:
    if len(use.started) != 1 or len(use.done) != 1 or use.started[0].background:
        return False
    code, took_s = use.done[0].exit_code, use.done[0].at_s - use.started[0].at_s
    return code is not None and 1 <= code <= LARGEST_OWN_CODE and took_s <= QUICK_S / history.run.time_scale


# ---- stopped at a time limit


def _of_a_stopped_one(history: History, turn: Turn, use: ToolUse) -> Iterator[Verdict]:
    following = next((it for it in use.results if it.turn == turn.number), None)
    if following is None or any(it.id < following.id for it in use.done) or blocked(history, use, following):
        return
    began = use.started[0]
    carried = [it for it in following.results if it.token == use.token]
    if may_be_summarized(history, use.reply, following):
        return
    if following.at_s - began.at_s < LONG_ENOUGH_S:
        if not use.done and carried and all(map(_says_as_if_well, carried)):
            says = f"{name_of_call(use)} died before its end, and nothing in its result says so"
            yield fail(says, (use.reply, began, following))
        return
    if all(map(_says_stopped, carried)) and not any(it.printed or it.prints_first for it in carried):
        says = f"{name_of_call(use)} was stopped, and what it had printed is not in its result"
        yield fail(f"{says} ({carried[0].chars} characters)", (use.reply, began, following))
    elif carried and all(map(_says_nothing, carried)):
        says = f"{name_of_call(use)} had not ended, and its result says nothing of that"
        yield fail(f"{says} ({carried[0].chars} characters)", (use.reply, began, following))
    elif any(it.prints_first for it in carried):
        yield passed(because=f"the result of {name_of_call(use)} holds what it had printed")


def _says_stopped(result: ToolResult) -> bool:
    """Whether it says that the command was ended, and not that it still runs or that its output is in a file."""
    signs = set(result.signs or ())
    return result.prints_first is False and "stopped" in signs and signs.isdisjoint(("elsewhere", "foreign"))


def _says_as_if_well(result: ToolResult) -> bool:
    """Whether it holds what the command had printed first, and not one word or number of how it ended."""
    known = result.signs_known and not result.is_error
    return known and not result.signs and result.prints_first is True


def _says_nothing(result: ToolResult) -> bool:
    """Whether it is as good as empty, though the command had printed something."""
    empty = result.chars <= EMPTY_CHARS and result.signs is not None and set(result.signs) <= {"bare", "success"}
    return empty and result.prints_first is False and not result.is_error and not result.in_text


# ---- subagents


def _of_a_subagent(silent: SilentSubagent) -> Verdict:
    told = not silent.is_empty if silent.answered else any(map(_tells_of_failure, silent.results))
    if told:
        return passed(because="the result of the subagent says that it failed")
    chars = min(it.chars for it in silent.results)
    return fail(f"{silent}, and no result in request {silent.following.call} says so ({chars} characters)", silent.seen)


def _of_an_ended_one(silent: SilentSubagent) -> Verdict:
    """It has reached its limit; `subagent_failure_told` judges an empty result."""
    request = silent.following.call
    if silent.is_praised:
        return fail(f"{silent}, and its result in request {request} tells of a success", silent.seen)
    if any(map(_tells_of_failure, silent.results)):
        return passed(because="the result of the subagent that was ended says so")
    if silent.has_spoken or silent.is_empty:
        return nothing(f"not judged: {silent}; what its parent reads may be its own words")
    chars = min(it.chars for it in silent.results)
    return fail(f"{silent}, and no result in request {request} says so ({chars} characters)", silent.seen)
