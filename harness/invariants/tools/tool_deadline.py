"""A tool call ends in time, whatever the tool's own timers are."""

from collections.abc import Iterator
from dataclasses import dataclass

from wedgehog.fake_llm.script.roles import names_subagent
from wedgehog.fake_llm.script.side_conversations import SUBAGENT
from wedgehog.harness.invariants.overload import too_late
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import (
    blocked,
    main_calls_of,
    name_of_call,
    over,
    short_time,
    together,
    tool_uses_of,
)
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, inconclusive, nothing, passed
from wedgehog.harness.record.views import ToolUse, Turn


@dataclass(frozen=True, slots=True)
class _Use:
    use: ToolUse
    end: Event
    took_s: float
    blocked: bool
    """A fault of the model's link may have blocked the request with the result."""

    @property
    def took(self) -> str:
        """`took 2.1 s`, or how long after its reply the turn was over, with the tool call still open."""
        if any(self.end is end for end in self.use.done):
            return f"took {short_time(self.took_s)}"
        carried = any(self.end is end for end in self.use.results)
        by_requests = f"took {short_time(self.took_s)} from its reply to the request with its result"
        return by_requests if carried else f"was still open {short_time(self.took_s)} after its reply"


@invariant("tool_deadline")
def tool_deadline(history: History, *, tool_s: float | None = None) -> Verdict:
    """A tool call ends within `tool_s` of the reply that asked for it (no stock number: the slowest is reported).

    Counted from the last byte of that reply to the request with the result or the tool's own done-beacon. A deadline
    that starts again with each redirect bounds nothing (incident silent-stall). A subagent that asks the model is a
    conversation: its time is bounded by that of the turn.

    Fix: Give the whole tool call one deadline (such as `asyncio.timeout`), not each read or redirect, and send a
    result that says that it timed out.
    """
    uses = [measured for turn in history.turns for measured in _measured(history, turn)]
    if not uses:
        return nothing("no tool call ran")
    slowest = max((it for it in uses if not it.blocked), key=lambda it: it.took_s, default=None)
    remark = "" if slowest is None else f"the slowest tool call {slowest.took}"
    if tool_s is None:
        return passed(remark)
    late = [_late(history, it, tool_s) for it in uses if it.took_s > history.stretched(tool_s)]
    return together([*late, passed(remark)])


def _late(history: History, it: _Use, tool_s: float) -> Verdict:
    says, evidence = f"{name_of_call(it.use)} took {it.took_s:.1f} s, {tool_s:.1f} s allowed", (it.use.reply, it.end)
    if it.blocked:
        return inconclusive(f"{says}, but a fault blocked the next request", evidence)
    over_s = it.took_s - history.stretched(tool_s)
    return too_late(history, says, evidence, over_s=over_s, since_s=it.use.reply.at_s, until_s=it.end.at_s)


def _measured(history: History, turn: Turn) -> Iterator[_Use]:
    for use in tool_uses_of(turn):
        end = _end(turn, use)
        if end is not None and use.offered.whole and not _delegates(turn, use, end):
            took_s = max(0.0, end.at_s - use.reply.at_s) - history.frozen_s(use.reply.at_s, end.at_s)
            yield _Use(use, end, took_s, not isinstance(end, BeaconSeen) and blocked(history, use, end))


def _delegates(turn: Turn, use: ToolUse, end: Event) -> bool:
    """Whether a subagent asked the model for this call."""
    asked = (call for call in turn.calls if use.reply.id < call.arrived.id < end.id)
    return names_subagent(use.offered.name) and any(call.arrived.side.startswith(SUBAGENT) for call in asked)


def _end(turn: Turn, use: ToolUse) -> Event | None:
    """What ended the tool call; for one that never ended, what ended its turn; None if it never ran."""
    # What follows a kill or an abort, until the next start or the user's next message, is not the tool's time.
    stops = [stop for stop in (turn.killed, turn.aborted) if stop is not None and use.started]
    ends: list[Event] = [event for event in (*use.done, *use.results, *stops) if event.id > use.reply.id]
    if ends:
        return min(ends, key=lambda event: event.id)
    following = next((call.arrived for call in main_calls_of(turn) if call.arrived.id > use.reply.id), None)
    if following is not None:
        # The agent went on, perhaps with a result that could not be matched to its call.
        return following if use.started else None
    offered_whole = any(call.ok and call.ended is use.reply for call in turn.main_calls)
    return over(turn) or turn.end if use.started or offered_whole else None
