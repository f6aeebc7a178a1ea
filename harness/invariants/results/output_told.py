"""The result of a command that worked has what it printed."""

from collections.abc import Iterator
from itertools import dropwhile

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call
from wedgehog.harness.invariants.tool_results import ANOTHER_FORM_CHARS, outputs_told
from wedgehog.harness.record.events.call import RequestArrived, ToolResult
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import ToolUse

AT_ONCE_S = 5.0
"""Real seconds between the end of a command and its result. Later a time limit may have passed: what the command left
running held its output open."""
IN_ANOTHER_PLACE = frozenset(("elsewhere", "foreign"))
"""Signs of a result that may say where the output is."""


@invariant("output_told", level="strict")
def output_told(history: History) -> Iterator[Verdict]:
    """The result of a command that ended well has what the command printed, or says where that is.

    A model that reads only "the command was executed" knows nothing of its tests or its files, and guesses. Judged on
    commands that ended with 0 within 2 s, where the result is short and has neither the first nor the last words of the
    output. A file, a process or a session that it names is enough. `tools_alive` judges a shell whose output came in
    the control run, and `failure_told` a command that failed.

    Nor does it say behind the output that the command was stopped or timed out, if it is sent within 5 s of the end.

    A later request does not say the opposite: where a result was sent with its output, and then says that the command
    was interrupted, the model runs it again. A result that was cleared or summed up may be short. Judged where
    faults struck the model alone: after a kill, a stop or on a full disk the result may not be stored.

    Fix: Store a result before the request that carries it is sent. Read the output of a command to its end after the
    command has ended, and send it as the result. If a terminal tells you of the end too early, wait for the output,
    not for a fixed time. End the clock of a time limit when its command has ended.
    """
    for use, following, carried in outputs_told(history):
        if carried and all(map(_has_nothing_of_it, carried)):
            says = f"{name_of_call(use)} ended well, and its result has nothing of what it printed"
            yield fail(f"{says} ({carried[0].chars} characters)", (use.done[0], following))
        elif carried and _is_called_stopped(carried[0]) and following.at_s - use.done[0].at_s <= AT_ONCE_S:
            says = f"{name_of_call(use)} ended with exit code 0, and its result says that it was stopped"
            yield fail(says, (use.done[0], following))
        elif any(it.prints_first is not None for it in carried):
            yield passed(because=f"the result of {name_of_call(use)} has what it printed")
    of_the_model = all(fired.link == "llm" for fired in history.of(FaultFired))
    for use in history.tool_uses if of_the_model else ():
        if use.done and (later := _unsaid(use)) is not None:
            says = f"the output of {name_of_call(use)} was sent, and a later request says that it failed or was stopped"
            yield fail(says, (use.done[0], later))


def _unsaid(use: ToolUse) -> RequestArrived | None:
    """The first request that calls a command interrupted whose output an earlier one carried; None without one."""
    told = [(request, it) for request in use.results for it in request.results if it.token == use.token]
    behind = dropwhile(lambda each: not each[1].printed, told)
    return next((request for request, it in behind if _says_that_it_was_stopped(it)), None)


def _says_that_it_was_stopped(result: ToolResult) -> bool:
    signs = set(result.signs or ())
    only = {"failed", "stopped"} <= signs and signs.isdisjoint(IN_ANOTHER_PLACE | {"part"})
    return only and not result.in_text and _has_nothing_of_it(result)


def _is_called_stopped(result: ToolResult) -> bool:
    return result.printed and not result.in_text and "was_stopped" in (result.signs or ())


def _has_nothing_of_it(result: ToolResult) -> bool:
    known = result.signs_known and result.chars < ANOTHER_FORM_CHARS
    lacks_all = result.prints_first is False and not result.printed
    return known and lacks_all and IN_ANOTHER_PLACE.isdisjoint(result.signs or ())
