"""A tool call is over in time, whatever the tool's own timers say."""

from collections.abc import Iterator
from dataclasses import dataclass

from wedgehog.harness.invariants.overload import too_late
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import main_calls_of, over, together, tool_uses_of
from wedgehog.harness.record.event import BeaconSeen, Event, FaultFired
from wedgehog.harness.record.history import History, ToolUse, Turn
from wedgehog.harness.record.verdict import Verdict, inconclusive, nothing, passed


@dataclass(frozen=True, slots=True)
class _Use:
    use: ToolUse
    end: Event
    took_s: float
    kept_away: bool
    """A fault of the model's link may have kept the request with the result from arriving."""


@invariant("tool_deadline")
def tool_deadline(history: History, *, tool_s: float | None = None) -> Verdict:
    """A tool call ends within `tool_s` of the reply that asked for it (no stock number: the slowest is reported).

    Counted from the last byte of that reply to the request with the result or the tool's own done-beacon. A deadline
    that starts anew with each redirect holds for none of them (incident silent-stall).
    """
    uses = [measured for turn in history.turns for measured in _measured(history, turn)]
    if not uses:
        return nothing("no tool call was carried out")
    slowest = max((it.took_s for it in uses if not it.kept_away), default=None)
    remark = "" if slowest is None else f"the slowest tool call took {slowest:.1f} s"
    if tool_s is None:
        return passed(remark)

    def each(bound_s: float) -> Iterator[Verdict]:
        for it in uses:
            over_s = it.took_s - history.stretched(bound_s)
            if over_s > 0:
                name = f"tool call {it.use.token} ({it.use.offered.name})"
                says = f"{name} took {it.took_s:.1f} s, {bound_s:.1f} s allowed"
                if it.kept_away:
                    yield inconclusive(f"{says}, but a fault kept the next request away", (it.use.reply, it.end))
                else:
                    span = {"over_s": over_s, "since_s": it.use.reply.at_s, "until_s": it.end.at_s}
                    yield too_late(history, says, (it.use.reply, it.end), **span)
        yield passed(remark)

    return together(each(tool_s))


def _measured(history: History, turn: Turn) -> Iterator[_Use]:
    for use in tool_uses_of(turn):
        end = _end(turn, use)
        if end is not None and use.offered.whole:
            kept_away = not isinstance(end, BeaconSeen) and any(
                fault.link == "llm" and fault.call is None and use.reply.id < fault.id < end.id
                for fault in history.of(FaultFired)
            )
            took_s = max(0.0, end.at_s - use.reply.at_s) - history.frozen_s(use.reply.at_s, end.at_s)
            yield _Use(use, end, took_s, kept_away)


def _end(turn: Turn, use: ToolUse) -> Event | None:
    """What ended the tool call; for one that never ended, what ended its turn; None if it was never carried out."""
    # What the agent does about it after a kill, and how long it then takes to start, is no work of the tool.
    killed: tuple[Event, ...] = (turn.killed,) if turn.killed is not None and use.started else ()
    ends: list[Event] = [event for event in (*use.done, *use.results, *killed) if event.id > use.reply.id]
    if ends:
        return min(ends, key=lambda event: event.id)
    following = next((call.arrived for call in main_calls_of(turn) if call.arrived.id > use.reply.id), None)
    if following is not None:
        # The agent went on: with a result that could not be matched to its call, or without one.
        return following if use.started else None
    offered_whole = any(call.ok and call.ended is use.reply for call in turn.main_calls)
    return over(turn) or turn.end if use.started or offered_whole else None
