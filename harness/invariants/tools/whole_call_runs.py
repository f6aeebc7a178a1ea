"""A whole tool call runs, also after a broken try and in another form of the stream."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.results.calls_kept import lost_calls
from wedgehog.harness.invariants.scope import name_of_call, over, requests
from wedgehog.harness.invariants.tool_results import denied
from wedgehog.harness.record.events.call import RequestArrived
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import ToolUse, Turn


@invariant("whole_call_runs")
def whole_call_runs(history: History) -> Iterator[Verdict]:
    """A tool call that came whole after a broken try, or in another form of the stream, runs before its result is sent.

    An agent that appends the whole arguments of the second try to the half ones of the first can parse neither. Nor can
    an agent that takes an empty field of a later chunk for a new call. The model then reads that its call was wrong,
    though it was right. Whether a call ran is known by the beacon of its command. Judged if another call of the same
    tool ran in this run, and no other call of the same reply: an agent may run one call of a reply, and tell the model
    that it skipped the others. Not judged if another message came during the turn, because an agent may then skip its
    calls.

    An agent that melts the calls of a stream into one can parse none of them: nothing runs, one call gets an error as
    its result, and the others are gone. `calls_kept` judges an agent that runs a part of the calls.

    Fix: Begin each try with empty buffers: no text, no tool calls, no arguments of the try before it. Find the call to
    which a chunk belongs by its index, and let an empty field of a later chunk change nothing.
    """
    for turn in history.turns:
        if over(turn) is None and not history.beside(turn):
            yield from _judge(history, turn)
            yield from _melted(history, turn)


def _judge(history: History, turn: Turn) -> Iterator[Verdict]:
    ran_here = {use.token for use in turn.tool_uses if use.started}
    ran = {use.offered.name for other in history.turns for use in other.tool_uses if use.started}
    for token, offers in groupby(sorted(turn.tool_uses, key=lambda use: use.token), key=lambda use: use.token):
        tries = sorted(offers, key=lambda use: use.reply.id)
        whole = _whole_after_a_broken_one(tries) or _in_another_form(tries)
        if whole is None or token in denied(history) or whole.offered.name not in ran:
            continue
        if token in ran_here:
            yield passed(because=f"{name_of_call(whole)} came whole, and ran")
        elif not ran_here & {it.token for it in whole.reply.tool_calls} and (sent := _sent(whole)) is not None:
            how = "in another form" if whole.reply.says_all else "after a broken try"
            says = f"{name_of_call(whole)} came whole {how}, and did not run"
            yield fail(f"{says}; request {sent.call} carries a result for it", (tries[0].reply, whole.reply, sent))


def _melted(history: History, turn: Turn) -> Iterator[Verdict]:
    """Judge replies with several calls that no fault struck."""
    ran = [use.offered.name for other in history.turns for use in other.tool_uses if use.started]
    started = {use.token for use in turn.tool_uses if use.started}
    for said, lost, later in lost_calls(history, turn):
        uses = [use for use in turn.tool_uses if use.reply is said.ended]
        known = {use.token for use in uses if use.offered.name in ran}
        tokens = {use.token for use in uses}
        if said.faults or tokens & (started | denied(history)) or known != tokens or not lost:
            continue
        says = f"call {said.number} has {len(tokens)} tool calls that came whole, and none of them ran"
        yield fail(f"{says}; no later request of the turn has {', '.join(sorted(lost))}", requests([said, *later]))


def _whole_after_a_broken_one(tries: Sequence[ToolUse]) -> ToolUse | None:
    broken = next((use for use in tries if not use.offered.whole), None)
    later = (use for use in tries if broken is not None and use.reply.id > broken.reply.id)
    return next((use for use in later if use.offered.whole and use.reply.how == "complete"), None)


def _in_another_form(tries: Sequence[ToolUse]) -> ToolUse | None:
    return next((it for it in tries if it.reply.says_all and it.offered.whole and it.reply.how == "complete"), None)


def _sent(whole: ToolUse) -> RequestArrived | None:
    """The first request after the whole call with a result that is not the command's own output."""
    later = (request for request in whole.results if request.id > whole.reply.id)
    return next((request for request in later if not _printed(request, whole.token)), None)


def _printed(request: RequestArrived, token: str) -> bool:
    return any(result.token == token and result.printed for result in request.results)
