"""The result of a command that worked has what it printed."""

from collections.abc import Iterator

from wedgehog.harness.invariants.failure_told import ANOTHER_FORM_CHARS
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call
from wedgehog.harness.invariants.tools_alive import outputs_told
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed

IN_ANOTHER_PLACE = frozenset(("elsewhere", "foreign"))
"""Signs of a result that may say where the output is."""


@invariant("output_told", level="strict")
def output_told(history: History) -> Iterator[Verdict]:
    """The result of a command that ended well has what the command printed, or says where that is.

    A model that reads only "the command was executed" knows nothing of its tests or its files, and guesses. Judged on
    commands that ended with 0 within 2 s, where the result is short and has neither the first nor the last words of the
    output. A file, a process or a session that it names is enough. `tools_alive` judges a shell whose output came in
    the control run, and `failure_told` a command that failed.

    Fix: Read the output of a command to its end after the command has ended, and send it as the result. If a terminal
    tells you of the end too early, wait for the output, not for a fixed time.
    """
    for use, following, carried in outputs_told(history):
        if carried and all(map(_has_nothing_of_it, carried)):
            says = f"{name_of_call(use)} ended well, and its result has nothing of what it printed"
            yield fail(f"{says} ({carried[0].chars} characters)", (use.done[0], following))
        elif any(it.prints_first is not None for it in carried):
            yield passed(because=f"the result of {name_of_call(use)} has what it printed")


def _has_nothing_of_it(result: ToolResult) -> bool:
    known = result.signs is not None and not result.in_text and result.chars < ANOTHER_FORM_CHARS
    lacks_all = result.prints_first is False and not result.printed
    return known and lacks_all and IN_ANOTHER_PLACE.isdisjoint(result.signs or ())
