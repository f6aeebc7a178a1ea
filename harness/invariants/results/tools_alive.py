"""After healing the tools work, and what a tool printed reaches the model."""

from collections import Counter
from collections.abc import Iterable, Iterator

from wedgehog.fake_llm.script.roles import SHELL
from wedgehog.harness.invariants.overload import unless_slowed
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import (
    REFUSES_THE_REQUEST,
    blocked,
    compacts,
    ends,
    main_calls_of,
    name_of_call,
    requests,
    tool_uses_of,
)
from wedgehog.harness.invariants.tool_results import (
    denied,
    disturbed,
    ended_well,
    may_be_summarized,
    next_request,
    reply_is_sound,
)
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import RequestArrived, ToolResult
from wedgehog.harness.record.events.service import BeaconSeen, ToolAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed
from wedgehog.harness.record.views import ToolUse, Turn

NO_OUTPUT_CHARS = 20
"""A longer text may stand for the output: a summary, or the file in which it was saved."""


@invariant("tools_alive")
def tools_alive(history: History) -> Iterator[Verdict]:
    """After healing a tool round works again, and the output of a command that worked reaches the model.

    The recovery message calls each kind of tool that worked in the control run: the agent's shell, and a tool of our
    host (MCP). If the message is answered, each must be offered, run, and be answered by its own output.

    In every turn, the output of a command that ended well within 2 s is in a later request, if one follows in its turn.
    An agent that sends an error or nothing instead has lost work, and so has one that says of a command that printed
    something only that it worked ("executed successfully"), or that there was no output. One that sends the output of
    another call has mixed them up. A retry carries it as the first attempt did, unless the provider refused the request
    for its content or its size. Not judged where a fault struck the tool or its process.

    Fix: Open a tool server's connection anew after it broke, and offer its tools again. Send every result that has
    arrived, also if the request before it failed.
    """
    recoveries = [turn for turn in history.turns if turn.recovery]
    if recoveries and outcome_of(recoveries[-1], history).kind == "answered":
        yield from _after_healing(history, recoveries[-1])
    for turn in history.turns:
        if not disturbed(history, turn):
            yield from _outputs(history, turn)


# ---- after healing


def _after_healing(history: History, turn: Turn) -> Iterator[Verdict]:
    uses = {use.step: use for use in turn.tool_uses}
    for step, tool in enumerate(history.run.recovery_tools, start=1):
        if step not in uses:
            says = f"after healing {_named(tool)} is gone: request {turn.main_calls[-1].number} does not offer it"
            yield _dead(history, turn, says, (*requests(turn.main_calls), *ends(turn)))
            return
        yield _works(history, turn, uses[step], tool)


def _works(history: History, turn: Turn, use: ToolUse, tool: str) -> Verdict:
    named = f"after healing {_named(tool)}"
    evidence = (use.reply, *use.started, *use.done, *requests(turn.main_calls))
    if not use.started:
        return _dead(history, turn, f"{named} does not work: {name_of_call(use)} never ran", evidence)
    if not any(_is_output(it) for it in use.carried):
        if _is_summed_up(history, turn, use):
            return nothing(f"{named}: a summary may have the output of {name_of_call(use)}")
        says = f"{named} does not work: {name_of_call(use)} ran, and no request carries its output"
        return _dead(history, turn, says, evidence)
    return passed(because=f"{named} works: {name_of_call(use)} ran, and a request carries its output")


def _is_summed_up(history: History, turn: Turn, use: ToolUse) -> bool:
    """Whether the agent asked for a summary in the place of messages before it sent the result."""
    after = next((it.arrived.id for it in turn.main_calls if it.arrived.id > use.reply.id), history.end_id)
    return any(compacts(it) for it in history.calls if use.reply.id < it.arrived.id < after)


def _dead(history: History, turn: Turn, says: str, evidence: Iterable[Event]) -> Verdict:
    """An agent may ask a server for its tools before its first request, with a time-out of its own."""
    since_s = turn.stimulus.at_s if turn.stimulus is not None else turn.start_s
    until_s = turn.end.at_s if turn.end is not None else turn.start_s
    return unless_slowed(history, says, evidence, since_s, until_s)


def _named(tool: str) -> str:
    return "the shell" if tool == SHELL else f"the tool {tool} of our host (MCP)"


def _is_output(result: ToolResult) -> bool:
    """Whether it has the tool's own output, by its last line; the model reads it under the mark of an error too."""
    return result.in_text or (result.printed and not result.prints)


# ---- in every turn


def _outputs(history: History, turn: Turn) -> Iterator[Verdict]:
    uses = [use for use in tool_uses_of(turn) if reply_is_sound(history, turn, use)]
    for reply in dict.fromkeys(use.reply for use in uses):
        siblings = [use for use in uses if use.reply is reply]
        if not all(ended_well(history, use) for use in siblings):
            continue  # what a failed call leaves of the others is `work_kept`
        following = next_request(turn, siblings)
        if following is not None and not may_be_summarized(history, reply, following):
            yield from (_reached(history, turn, use, following) for use in siblings if _judged(history, use))


def _judged(history: History, use: ToolUse) -> bool:
    """Whether results of this kind of tool reach the model in the control run, and the user allowed the call.

    A result that says that the command worked, and no more, is judged without that. `no_denied_calls` judges a denied
    call that ran.
    """
    if use.token in denied(history):
        return False
    if any(map(_says_only_that_it_worked, use.carried)):
        return True
    of_host = any(asked.token == use.token for asked in history.of(ToolAsked))
    return any((tool != SHELL) is of_host for tool in history.run.recovery_tools)


def _reached(history: History, turn: Turn, use: ToolUse, following: RequestArrived) -> Verdict:
    carried = use.carried
    if other := next((it.prints for it in carried if it.prints), ""):
        says = f"request {following.call} has the output of tool call {other} in its place"
        return fail(f"{name_of_call(use)} ended well, and {says}", (use.reply, use.done[0], following))
    if any(map(_stands_for_output, carried)):
        return _in_the_retries(turn, use, following)
    if blocked(history, use, following):
        return passed(because=f"a fault may have blocked the result of {name_of_call(use)}")
    what = _instead(carried[0]) if carried else _without_it(following)
    says = f"{name_of_call(use)} ended well, and its output never reached the model: request {following.call} {what}"
    done: BeaconSeen = use.done[0]
    return unless_slowed(history, says, (use.reply, done, following), use.reply.at_s, following.at_s)


def _in_the_retries(turn: Turn, use: ToolUse, following: RequestArrived) -> Verdict:
    """The last accepted attempt at the step has the output too, unless the provider refused one for what it says."""
    reached = passed(because=f"the output of {name_of_call(use)} reached the model")
    tries = [it for it in main_calls_of(turn) if it.arrived.id >= following.id and it.arrived.step == following.step]
    if any(it.refused is not None and it.refused.status in REFUSES_THE_REQUEST for it in tries):
        return reached
    last = next((it for it in reversed(tries) if it.paid), None)
    carried = [it for it in last.arrived.results if it.token == use.token] if last is not None else []
    if last is None or not carried or any(map(_stands_for_output, carried)):
        return reached
    says = f"{name_of_call(use)} ended well, and its output is gone in a retry: request {last.number}"
    says += f" {_instead(carried[0])}"
    return fail(says, (use.reply, use.done[0], *requests([*tries[:1], last])))


def _without_it(following: RequestArrived) -> str:
    """What a request has that does not carry the output. On a wire without ids it may be another one, several times."""
    tokens = Counter(it.token for it in following.results if it.token and not it.in_text)
    other, times = next(iter(tokens.most_common(1)), ("", 0))
    return f"has the output of tool call {other} {times} times" if times > 1 else "carries no result of it"


def _instead(result: ToolResult) -> str:
    if _says_only_that_it_worked(result):
        return f"says only that it worked, or that there was no output ({result.chars} characters)"
    return f"sends an error or nothing in its place ({result.chars} characters)"


def _stands_for_output(result: ToolResult) -> bool:
    another_form = result.chars >= NO_OUTPUT_CHARS and not _says_only_that_it_worked(result)
    return _is_output(result) or result.printed or (not result.is_error and another_form)


def _says_only_that_it_worked(result: ToolResult) -> bool:
    bare = "bare" in (result.signs or ()) and result.prints_first is not True
    return bare and not result.is_error and not result.in_text
