"""An error that a user sees is a sentence, not the stack of the program."""

import re
from collections.abc import Iterator

from wedgehog.harness.agents.callables.callable_host import STACK_BELOW
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends
from wedgehog.harness.record.error_words import TRACE
from wedgehog.harness.record.events.turn import TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed

STACKS = (
    re.escape(TRACE),
    r"^\s+at \S.*\(?(?:file://|node:|/)\S+:\d+:\d+\)?$",
    r"^panic: .*\n(?:.*\n)?goroutine \d+",
    r"^thread '.*' panicked at ",
)
"""The stacks of Python, Node.js, Go and Rust."""


@invariant("no_traceback", level="strict")
def no_traceback(history: History) -> Iterator[Verdict]:
    """A turn that ends in an error shows no stack of the program.

    Its user sees that something went wrong, but not what to do. It usually means that no line of the agent expects this
    failure. Judged on the agent's output, in turns that end in a visible error. Not counted are the log of a service,
    the standard error of an agent that speaks a protocol (ACP, JSON lines), the stack of an exception that a `callable`
    raises, which Wedgehog prints, and what a process printed while turns of two sessions ran in it.

    Fix: Catch this error where the turn ends, and print one sentence. Write the stack to a log file.
    """
    for turn in history.turns:
        if turn.end is None or outcome_of(turn, history).kind != "surfaced":
            continue
        stack = next((it for it in STACKS if re.search(it, _shown(turn.end), re.MULTILINE)), None)
        if stack is not None:
            yield fail(f"{turn}: the error that its user sees is the stack of the program", ends(turn))
        else:
            yield passed(because=f"{turn}: its error is no stack of the program")


def _shown(end: TurnEnded) -> str:
    """What the user of the turn has read: of a service its response, of a program all that it printed for this turn."""
    said = f"{end.answer}\n{end.error}"
    if end.status is not None or end.shared:
        return said
    own = "" if end.log_on_stderr else end.stderr.partition(STACK_BELOW)[0]
    return f"{end.stdout}\n{own}\n{said}"
