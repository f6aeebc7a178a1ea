"""A subagent that the model of its parent has stopped asks its own model no more."""

from collections.abc import Iterator

from wedgehog.fake_llm.script.roles import names_stop
from wedgehog.harness.invariants.overload import too_late
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call, requests
from wedgehog.harness.invariants.subagents.background_subagents import BackgroundSubagent, in_the_background
from wedgehog.harness.record.events.call import RequestArrived
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, nothing, passed
from wedgehog.harness.record.views import ToolUse

LAST_WORDS = 1
"""A subagent may be asked for a last word of what it has done."""


@invariant("subagent_stops", unscaled=("grace_s",))
def subagent_stops(history: History, *, grace_s: float = 2) -> Iterator[Verdict]:
    """More than `grace_s` after the model has read that it stopped a subagent, this sends at most one request.

    A stop that only changes a status leaves a subagent that works on: it is paid, it edits files, and its parent
    believes that nothing more changes. Judged where one subagent works in the background, and the model stops it by a
    tool of its agent. Not judged where the result is an error, or says that something still runs. One request more is
    allowed, for the last words of the subagent.

    Fix: Keep the task of each subagent, with its cancellation, from the moment at which it is asked for. A stop cancels
    it: its request, its tools, and its start if it still waits for one.
    """
    for use in history.tool_uses:
        if names_stop(use.offered.name) and (told := _read(use)) is not None:
            yield from _judge(history, use, told, grace_s)


def _read(use: ToolUse) -> RequestArrived | None:
    """The first request that tells the model that the stop worked."""
    sent = next((it for it in use.results if not it.background), None)
    carried = [it for it in sent.results if it.token == use.token] if sent is not None else []
    works = carried and not any(it.is_error or it.in_text or "elsewhere" in (it.signs or ()) for it in carried)
    return sent if works else None


def _judge(history: History, use: ToolUse, told: RequestArrived, grace_s: float) -> Iterator[Verdict]:
    found = [it for it in in_the_background(history) if it.uses[0].reply.id < use.reply.id]
    if not found:
        yield passed(because=f"{name_of_call(use)} stopped a subagent that never asked its model")
    elif len(found) > 1:
        yield nothing("not judged: it is not known which subagent was stopped")
    else:
        yield _after(history, found[0], use, told, grace_s)


def _after(
    history: History, stopped: BackgroundSubagent, use: ToolUse, told: RequestArrived, grace_s: float
) -> Verdict:
    allowed_s = history.stretched(grace_s)
    late = [call for call in stopped.calls if call.at_s > told.at_s + allowed_s]
    says = f"{name_of_call(use)} stopped {stopped.name}"
    if len(late) <= LAST_WORDS:
        return passed(because=f"{says}; requests of it more than {allowed_s:.1f} s after that: {len(late)}")
    after_s = late[LAST_WORDS].at_s - told.at_s
    says = f"{says}, and {len(late)} requests of it came later, the last {late[-1].at_s - told.at_s:.1f} s after that"
    span = {"over_s": after_s - allowed_s, "since_s": told.at_s, "until_s": late[LAST_WORDS].at_s}
    return too_late(history, says, (told, *requests(late)), **span)
