"""A subagent that gets a message goes on from where it was."""

from collections.abc import Iterator

from wedgehog.fake_llm.script.roles import names_message, names_subagent
from wedgehog.fake_llm.script.side_conversations import SIDE
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, ToolUse


@invariant("subagent_goes_on", level="strict")
def subagent_goes_on(history: History) -> Iterator[Verdict]:
    """A message to a subagent of an earlier turn does not begin its task anew.

    A subagent that has ended, and gets a message from the model of its parent, may go on with its conversation. It may
    take the message for a new task, or the agent may refuse the message. If it begins with its first prompt again, and
    with nothing of what it did, its work is paid and done a second time. Judged where each subagent was begun by the
    main conversation, and had asked its model before the message. `at_most_once_tools` judges a second copy of it that
    has its conversation.

    Fix: Keep the conversation of a subagent that has ended, and put the message behind it. Without that conversation
    send an error as the result of the message.
    """
    for use in history.tool_uses:
        if names_message(use.offered.name) and use.results:
            yield from _after(history, use)


def _after(history: History, use: ToolUse) -> Iterator[Verdict]:
    begun = _subagents(history)
    if _hand_on(history):
        return
    until = next((it.reply.id for it in _delegating(history) if it.reply.id > use.reply.id), history.end_id)
    for turn in sorted({it.turn for it in _delegating(history) if it.reply.id < use.reply.id and it.turn < use.turn}):
        called = sum(it.turn == turn for it in _delegating(history))
        of_turn = [calls[0] for calls in begun if turn in {call.arrived.turn for call in calls}]
        before = [call for call in of_turn if call.arrived.id < use.reply.id]
        again = [call for call in of_turn if use.reply.id < call.arrived.id < until]
        if len(before) < called:
            continue
        if again:
            says = f"{name_of_call(use)} wrote to a subagent of turn {turn}, and its task begins anew"
            yield fail(f"{says} (request {again[0].number})", (before[0].arrived, use.reply, again[0].arrived))
        else:
            yield passed(because=f"no task of turn {turn} begins anew after {name_of_call(use)}")


def _delegating(history: History) -> list[ToolUse]:
    return [use for use in history.tool_uses if names_subagent(use.offered.name)]


def _subagents(history: History) -> list[list[Call]]:
    """The calls of each subagent. Those behind the first one belong to the turn whose prompt it has."""
    found: dict[str, list[Call]] = {}
    for call in history.calls:
        if call.arrived.side and call.arrived.background != SIDE:
            found.setdefault(call.arrived.side, []).append(call)
    return [*found.values()]


def _hand_on(history: History) -> bool:
    """Whether a subagent called another one."""
    ended = [call.ended for call in history.calls if call.arrived.side and call.ended is not None]
    return any(names_subagent(it.name) for reply in ended for it in reply.tool_calls)
