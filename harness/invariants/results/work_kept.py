"""The results of finished tool calls are kept when a parallel one fails."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import main_calls_of, over, tool_uses_of
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.call import RequestArrived, ToolResult
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, inconclusive, nothing, passed
from wedgehog.harness.record.views import ToolUse, Turn

SMALLEST_CAP_CHARS = 200
"""No agent cuts results shorter."""


@invariant("work_kept")
def work_kept(history: History, *, asked: bool = False) -> Iterator[Verdict]:
    """When one of several parallel tool calls fails, the results of those that finished are in the next request.

    An error that quotes the failed call, in the place of each result, is no result of the others.

    If the turn ends before that request, it is not judged, with one exception. The next turn's first request is judged
    if `asked`, or if no fault struck the turn, and the agent ended it because a command failed or because the arguments
    of a call were no JSON object.

    Fix: Collect the results of parallel tool calls one by one (such as `asyncio.gather(...,
    return_exceptions=True)`), and send an error text as the result of the one that failed.
    """
    for turn in history.turns:
        for siblings in _replies(turn):
            if len(siblings) > 1:
                yield _judge(history, turn, siblings, asked)


def _replies(turn: Turn) -> Iterator[list[ToolUse]]:
    """The tool calls of each reply that arrived whole."""
    uses = tool_uses_of(turn)
    for call in main_calls_of(turn):
        if call.ok:
            yield [use for use in uses if use.reply is call.ended]


def _judge(history: History, turn: Turn, siblings: Sequence[ToolUse], asked: bool) -> Verdict:
    reply = siblings[0].reply
    following = next((call.arrived for call in main_calls_of(turn) if call.arrived.id > reply.id), None)
    finished, failed = _sort(siblings, following or over(turn) or turn.end)
    if not finished or not failed:
        return nothing()
    if following is not None:
        return _kept(finished, following, "the next request")
    if not asked and _gave_up(history, turn, failed):
        kept = _after_the_turn(history, turn, finished, True)
        says = f"{turn} ended after a tool call had failed; {kept.says}"
        return replace(kept, says=says) if kept.status == "fail" else kept
    return _after_the_turn(history, turn, finished, asked)


def _gave_up(history: History, turn: Turn, failed: Sequence[ToolUse]) -> bool:
    """Whether the agent ended the turn by itself after a call had failed, and not because of any fault."""
    broken = any(not use.offered.whole for use in failed)
    exits = [end.exit_code for use in failed for end in use.done]
    struck = any(fault.turn == turn.number for fault in history.of(FaultFired))
    by_itself = over(turn) is None and turn.end is not None and turn.end.ended == "by itself"
    return by_itself and not struck and (broken or any(exits)) and any(it.number > turn.number for it in history.turns)


def _after_the_turn(history: History, turn: Turn, finished: Sequence[ToolUse], asked: bool) -> Verdict:
    ended = over(turn) or turn.end
    calls = (call for it in history.turns if it.number > turn.number for call in main_calls_of(it))
    later = next((call for call in calls if ended is None or call.arrived.id > ended.id), None)
    if later is None:
        says = f"{turn} ended before the results of {_tokens(finished)} could be sent, and no turn followed"
        return inconclusive(says, _proof(finished)) if asked else nothing(f"not judged: {says}")
    kept = _kept(finished, later.arrived, "the next turn's first request")
    if asked or kept.status == "pass":
        return kept
    return nothing(f"not judged, because the turn was over and the scenario does not ask for work_kept: {kept.says}")


def _sort(siblings: Sequence[ToolUse], until: Event | None) -> tuple[list[ToolUse], list[ToolUse]]:
    """Calls that had finished before `until`, and calls that failed: an error as result, or no sign of an end."""
    last = until.id if until is not None else 1 << 62
    results = {result.token: result for result in until.results} if isinstance(until, RequestArrived) else {}

    def done(use: ToolUse) -> BeaconSeen | None:
        return next((beacon for beacon in use.done if beacon.id < last), None)

    def failed(use: ToolUse) -> bool:
        end = done(use)
        if end is not None and end.exit_code is not None:
            return end.exit_code != 0
        result = results.get(use.token)
        return end is None if result is None else result.is_error or _was_left(use, end, result)

    bad = [use for use in siblings if failed(use)]
    return [use for use in siblings if done(use) is not None and use not in bad], bad


def _was_left(use: ToolUse, end: BeaconSeen | None, result: ToolResult) -> bool:
    """Whether the agent did not wait for the call's end; not every wire can mark such a result as an error."""
    return bool(use.started) and end is None and not result.printed


def _kept(finished: Sequence[ToolUse], request: RequestArrived, where: str) -> Verdict:
    results = {result.token: result for result in request.results}
    lost = [use for use in finished if not _told(use, results.get(use.token))]
    if not lost:
        return passed(f"the results of {_tokens(finished)} are in {where}")
    other = next((found.prints for use in lost if (found := results.get(use.token)) and found.prints), "")
    has = f"has the output of tool call {other} in its place" if other else "does not carry the result"
    says = f"{_tokens(lost)} finished, but {where} ({request.call}) {has}"
    # The missing result may be one that could not be matched to its call.
    return inconclusive(says, (request,)) if "" in results else fail(says, (*_proof(lost), request))


def _told(use: ToolUse, result: ToolResult | None) -> bool:
    """Whether it is the call's own result, by the command's last words, and not that of the call that failed.

    Not every wire can mark an error.
    """
    if result is None or result.prints:
        return False
    if result.printed:
        return True
    last_words_known = any(beacon.exit_code is not None for beacon in use.done)
    return not result.is_error and not (last_words_known and result.chars < SMALLEST_CAP_CHARS)


def _proof(uses: Sequence[ToolUse]) -> tuple[Event, ...]:
    return tuple(beacon for use in uses for beacon in use.done[:1])


def _tokens(uses: Sequence[ToolUse]) -> str:
    return "tool call" + ("s " if len(uses) > 1 else " ") + ", ".join(use.token for use in uses)
