"""A call of a tool that does not exist is answered with words."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call, tool_uses_of
from wedgehog.harness.invariants.tool_results import disturbed
from wedgehog.harness.record.events.service import ToolAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import ToolUse


@invariant("missing_tool_told")
def missing_tool_told(history: History) -> Iterator[Verdict]:
    """The result of a call of a tool that does not exist is not empty: it says so, or is marked as an error.

    A model that reads an empty result believes that the tool ran and printed nothing. It goes on from there, or makes
    the same call again. Judged on calls of a name that no request of the run offers, and that started nothing.

    Fix: Answer a call of an unknown tool with an error as its result, such as "there is no tool NAME", with the names
    that there are.
    """
    offered = {name.lower() for call in history.calls for name in call.arrived.tools}
    for turn in history.turns:
        if offered and not disturbed(history, turn):
            missing = (use for use in tool_uses_of(turn) if use.offered.name.lower() not in offered)
            yield from (_told(use) for use in missing if use.results and not _ran(history, use))


def _ran(history: History, use: ToolUse) -> bool:
    """Whether the agent guessed which tool was meant."""
    return bool(use.started or use.done) or any(asked.token == use.token for asked in history.of(ToolAsked))


def _told(use: ToolUse) -> Verdict:
    if any(it.in_text or it.is_error or it.chars for it in use.carried):
        return passed(because=f"{name_of_call(use)} names no tool, and its result is not empty")
    says = f"{name_of_call(use)}: there is no such tool, and its result is empty, as if it had run"
    return fail(says, (use.reply, *use.results[:1]))
