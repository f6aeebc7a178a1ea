"""What became of a subagent in the background reaches its parent."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.requests.side_call_bound import SideCalls, side_calls
from wedgehog.harness.invariants.subagents.background_subagents import BackgroundSubagent, background_subagents
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed


@invariant("subagent_returns", asked=True)
def subagent_returns(history: History) -> Iterator[Verdict]:
    """The last words of a subagent in the background, or word of its end, reach the conversation or the user.

    No call waits for a subagent in the background. If its result is not delivered, it was paid for nothing, and the
    model of its parent believes for ever that it still works. An agent may wait for it, deliver its result with the
    next message, or by itself. Judged where a message came a second or more after its end, and where the model has no
    tool to ask for it, or has asked. A failure without a word is judged if another subagent of the run was heard of.

    Fix: Keep the result of each subagent with the session of its parent, and put it into the next request of that
    conversation. Where the process may end before the next message, wait for the subagent, or store what it said.
    """
    found = list(background_subagents(history))
    heard = any(it.how == "well" and it.told for it in found)
    for it in found:
        yield _judge(it, heard=heard)
    beside = {it.name for it in found}
    for side in side_calls(history):
        if side.name not in beside and _waited_for(history, side):
            yield passed(because=f"the agent waited for {side.name}")


def _waited_for(history: History, side: SideCalls) -> bool:
    """Whether a subagent ended well before its parent went on with the turn."""
    last = side.calls[-1]
    later = (call for call in history.calls if call.main and call.arrived.turn == side.turn)
    return last.final and any(call.arrived.id > last.arrived.id for call in later)


def _judge(it: BackgroundSubagent, *, heard: bool) -> Verdict:
    if it.told:
        return passed(because=f"word of {it.name}, which worked in the background, reached its parent or the user")
    if it.how == "cut off":
        return passed(f"{it}, and nothing in the conversation says so")
    if why := _why_not(it):
        return nothing(f"not judged: {why}")
    if it.how == "failed" and not heard:
        return passed(it.unheard)
    orphaned = f"; the agent's process had ended {it.outlived_s:.1f} s before" if it.outlived_s else ""
    return fail(it.unheard + orphaned, (it.last.arrived, it.end, it.chances[-1]))


def _why_not(it: BackgroundSubagent) -> str:
    """Why nothing can be said of it; empty if something can."""
    if it.how == "unknown":
        return str(it)
    if not it.chances:
        return f"no message came after the end of {it.name}"
    tool = it.may_be_asked_for
    return f"{it}; the model could ask for that by {tool}, and did not" if tool else ""
