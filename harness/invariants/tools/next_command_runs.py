"""A command is not typed into the program of the one before it."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call, over, tool_uses_of
from wedgehog.harness.invariants.tool_results import denied, disturbed, reply_is_sound
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import ToolUse, Turn


@invariant("next_command_runs", level="strict")
def next_command_runs(history: History) -> Iterator[Verdict]:
    """A command runs also if the one before it has not ended.

    On a terminal `git log` waits for a key. An agent that has one terminal types the next command into it: nothing
    runs, and the model reads the old screen as its output. Judged in turns without a fault on tools, where the model
    called a command after one that had begun and not ended, and a later request carries its result.

    Fix: Set `PAGER=cat` and `GIT_PAGER=cat` for the commands of the model, or give them no terminal. Start a new shell
    where the old one is taken.
    """
    for turn in history.turns:
        if over(turn) is None and not disturbed(history, turn):
            yield from _judge(history, turn)


def _judge(history: History, turn: Turn) -> Iterator[Verdict]:
    uses = [use for use in tool_uses_of(turn) if reply_is_sound(history, turn, use)]
    for use in uses:
        before = next((it for it in uses if _waits(it, use)), None)
        sent = next((request for request in use.results if request.id > use.reply.id), None)
        if before is None or use.token in denied(history):
            continue
        if use.started:
            yield passed(because=f"{name_of_call(use)} ran, though {name_of_call(before)} had not ended")
        elif sent is not None:
            says = f"{name_of_call(use)} never ran: {name_of_call(before)} had not ended"
            yield fail(f"{says}; request {sent.call} carries a result for it", (before.started[0], use.reply, sent))


def _waits(before: ToolUse, use: ToolUse) -> bool:
    """Whether a command had begun and not ended when another one was called."""
    begun = bool(before.started) and before.started[0].id < use.reply.id and not before.started[0].background
    return begun and not any(done.id < use.reply.id for done in before.done)
