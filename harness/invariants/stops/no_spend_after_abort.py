"""After its user or front end has stopped a turn, the agent sends no more model request for it."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.invariants.overload import too_late
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import next_message, requests
from wedgehog.harness.invariants.subagents.background_subagents import BackgroundSubagent, in_the_background
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, inconclusive, passed
from wedgehog.harness.record.views import Call, Turn


@invariant("no_spend_after_abort", unscaled=("grace_s",))
def no_spend_after_abort(history: History, *, grace_s: float = 2) -> Iterator[Verdict]:
    """No model request for a turn starts more than `grace_s` after its abort or hang-up was delivered.

    A back end that goes on for a front end that has given up wastes money (incident endless-loop). Where a scenario's
    user stops the turn, and the spec of a service names no `abort`, the service sees only that its client is gone: some
    finish the turn for the next visit, and that is said, and red at level `strict` (`stops_when_told`). Subagents in
    the background count only where the stop ended the agent's process: agents that stay differ in what a stop means to
    them.

    Fix: Cancel everything that the turn has started: the request, the retry loop and its pauses. Check before each
    new request whether the turn still runs. A service whose framework does not cancel a handler asks before each
    request if its client is still there (`await request.is_disconnected()`).
    """
    for turn in history.turns:
        if turn.stopped is not None:
            yield _judge(history, turn, turn.stopped, grace_s)


def _judge(history: History, turn: Turn, stop: Event, grace_s: float) -> Verdict:
    apart = _apart(history, turn)
    calls = _calls_after(history, turn, stop, apart)
    allowed_s = _allowed_s(history, stop, grace_s)
    late = _late(calls, stop, allowed_s)
    says = f"{turn}: {_came(calls)} after the {'abort' if turn.aborted else 'hang-up'}"
    if late and turn.aborted is not None and turn.aborted.hangs_up:
        says = f"{turn}: {_came(calls)} after its client was gone (the spec names no `abort`)"
        return passed(f"{says}: some services finish the turn for the next visit")
    if late and (held := _held_up(history, stop)):
        return inconclusive(f"{says}; it may have been sent before, as {held.name} held requests up", (held, stop))
    if late:
        until_s = late[-1].at_s
        last_s = until_s - stop.at_s
        says = f"{says}, {len(late)} of them more than {allowed_s:.1f} s after it, the last {last_s:.1f} s after it"
        span = {"over_s": last_s - allowed_s, "since_s": stop.at_s, "until_s": until_s}
        return too_late(history, says, (stop, *requests(late)), **span)
    says = f"{says}, none more than {allowed_s:.1f} s after it" if calls else says
    return passed(f"{says}{_beside(apart, stop)}")


def late_requests(history: History, turn: Turn, stop: Event, grace_s: float) -> list[Call]:
    """The requests for a turn that start too long after its stop."""
    calls = _calls_after(history, turn, stop, _apart(history, turn))
    return _late(calls, stop, _allowed_s(history, stop, grace_s))


def _late(calls: Sequence[Call], stop: Event, allowed_s: float) -> list[Call]:
    return [call for call in calls if call.at_s > stop.at_s + allowed_s]


def _apart(history: History, turn: Turn) -> tuple[BackgroundSubagent, ...]:
    return () if _ended_its_process(history, turn) else tuple(in_the_background(history))


def _allowed_s(history: History, stop: Event, grace_s: float) -> float:
    return history.stretched(grace_s) + history.frozen_s(stop.at_s, float("inf"))


def _beside(apart: Sequence[BackgroundSubagent], stop: Event) -> str:
    """What its subagents in the background did after the stop, which may leave them alone."""
    names = [it.name for it in apart if it.calls[0].arrived.id < stop.id < it.last.arrived.id]
    return f"; {', '.join(names)} went on in the background" if names else ""


def _held_up(history: History, stop: Event) -> FaultFired | None:
    """What made requests slow before the stop: one that the agent sent before, and then gave up, arrives after it."""
    slow = (it for it in history.of(FaultFired) if it.slows and it.link == "llm" and it.call is None)
    return next((it for it in slow if it.id < stop.id), None)


def _came(calls: Sequence[Call]) -> str:
    if not calls:
        return "no model request came"
    noun = "model request" if len(calls) == 1 else "model requests"
    return f"{len(calls)} {noun} ({sum(call.paid for call in calls)} paid) came"


def _calls_after(history: History, turn: Turn, stop: Event, apart: Sequence[BackgroundSubagent]) -> list[Call]:
    """The requests after a stop; after the next message only those that still belong to the stopped turn.

    So does a subagent that it had begun, and that goes on without having begun anew, until a tool call of a later turn
    may have given it more work. What is `apart` does not, nor does a request that tells of its end.
    """
    until = next_message(history, stop)
    again = _next_tool_call(history, turn, until)
    beside = {other.number for other in history.beside(turn)}
    begun = {call.arrived.side for call in turn.calls if call.arrived.side and call.arrived.id < stop.id}
    anew = {call.arrived.side for call in history.calls if call.arrived.id > until and call.arrived.step == 1}
    return [
        call
        for call in history.calls
        if call.arrived.id > stop.id
        and not any(call.arrived.side == it.name or it.heard_in(call.arrived) for it in apart)
        and (
            (call.arrived.id < until and call.arrived.turn not in beside)
            or (call.main and call.arrived.turn == turn.number)
            or (call.arrived.side in begun - anew and call.arrived.id < again)
        )
    ]


def _ended_its_process(history: History, turn: Turn) -> bool:
    """Whether the agent's process ended with the turn; in virtual time it has none."""
    return turn.end is not None and turn.end.exit_code is not None and history.run.network != "sim"


def _next_tool_call(history: History, turn: Turn, until: int) -> int:
    """The id of the first reply with a tool call that a later turn got; without one, the number of events."""
    later = (it for it in history.calls if it.main and it.arrived.id > until and it.arrived.turn != turn.number)
    calling = (it.started.id for it in later if it.started and it.ended and it.ended.tool_calls)
    return min(calling, default=history.end_id)
