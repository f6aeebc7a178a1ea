"""A call whose arguments do not fit is answered with what is wrong with them."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call, tool_uses_of
from wedgehog.harness.invariants.tool_results import disturbed
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import ToolUse


@invariant("arguments_told", level="strict")
def arguments_told(history: History) -> Iterator[Verdict]:
    """The result of a call whose arguments do not fit the tool's schema says what is wrong with them.

    A model that reads only "invalid input" makes the same call again. Judged where the arguments came whole, as a JSON
    object with a number in the place of a text, and the agent answered the call without running its command. The name
    of the parameter, a word such as "expected", "type", "string", "missing" or "schema", or a text of more than 300
    characters is enough. A result in another language than English passes.

    Fix: Put the words of the check into the result: which parameter is wrong, what was expected, and what came.
    """
    for turn in history.turns:
        if not disturbed(history, turn):
            yield from (it for use in tool_uses_of(turn) if use.offered.misfits for it in _told(use))


def _told(use: ToolUse) -> Iterator[Verdict]:
    carried = [it for it in use.carried if not it.in_text and it.names_arguments is not None]
    if not carried or use.started:
        return
    if any(it.names_arguments for it in carried):
        yield passed(because=f"the result of {name_of_call(use)} says what is wrong with its arguments")
    else:
        says = f"{name_of_call(use)}: its arguments do not fit, and its result does not say why"
        yield fail(f"{says} ({carried[0].chars} characters)", (use.reply, *use.results[:1]))
