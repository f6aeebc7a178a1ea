"""What a failed command printed reaches the model."""

from collections.abc import Iterator

from wedgehog.harness.invariants.overload import unless_slowed
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import blocked, name_of_call, tool_uses_of
from wedgehog.harness.invariants.tools_alive import (
    QUICK_S,
    carried_results,
    disturbed,
    may_be_summarized,
    next_request,
    reply_is_sound,
)
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, passed
from wedgehog.harness.record.views import ToolUse, Turn

LARGEST_OWN_CODE = 125
"""Above it the shell says that the command could not run, or was killed by a signal."""
ANOTHER_FORM_CHARS = 200
"""A longer text may hold what the command printed in another form."""


@invariant("failure_told", level="strict")
def failure_told(history: History) -> Iterator[Verdict]:
    """The words of a command that failed are in a later request of its turn, if one follows.

    A model that reads only "the tool failed" cannot mend what it did, and tries the same again. Judged on commands that
    printed something and ended within 2 s with an exit code of their own (1 to 125), where no fault struck the tool.

    Fix: Send what a failed tool printed, its standard error too, as its result, with the exit code beside it.
    """
    for turn in history.turns:
        if not disturbed(history, turn):
            yield from _of_turn(history, turn)


def _of_turn(history: History, turn: Turn) -> Iterator[Verdict]:
    for use in tool_uses_of(turn):
        if not _failed_by_itself(history, use) or not reply_is_sound(history, turn, use):
            continue
        following = next_request(turn, [use])
        carried = carried_results(use)
        if following is None or not carried or blocked(history, use, following):
            continue
        if may_be_summarized(history, use.reply, following):
            continue
        if any(it.printed or it.in_text or it.chars >= ANOTHER_FORM_CHARS for it in carried):
            yield passed()
            continue
        says = f"{name_of_call(use)} failed, and what it printed is not in its result ({carried[0].chars} characters)"
        yield unless_slowed(history, says, (use.reply, use.done[0], following), use.reply.at_s, following.at_s)


def _failed_by_itself(history: History, use: ToolUse) -> bool:
    if len(use.started) != 1 or len(use.done) != 1 or use.started[0].background:
        return False
    code, took_s = use.done[0].exit_code, use.done[0].at_s - use.started[0].at_s
    return code is not None and 1 <= code <= LARGEST_OWN_CODE and took_s <= QUICK_S / history.run.time_scale
