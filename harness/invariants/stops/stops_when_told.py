"""After its user has stopped a turn, its work ends: no tool runs on, and no request stays open."""

from collections.abc import Iterator

from wedgehog.harness.invariants.overload import too_late
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call, next_message, requests
from wedgehog.harness.invariants.stops.no_spend_after_abort import late_requests
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import AbortSent
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, ToolUse, Turn


@invariant("stops_when_told", level="strict", unscaled=("grace_s", "ends_s"))
def stops_when_told(history: History, *, grace_s: float = 2, ends_s: float = 15) -> Iterator[Verdict]:
    """After an abort no command runs to its end, requests in flight are hung up within `grace_s`, and the turn ends.

    A command that runs on changes what its user wanted to keep, and a stream that is not closed is paid to its end. A
    turn that ends later than `ends_s` after its abort looks like a hang. Where a tool worked at the abort, its result
    is not sent to the model in the same turn: an agent that takes the stop for a failure of the tool goes on with its
    work. `no_spend_after_abort` judges new requests later than its grace, and `turn_deadline` a turn that never ends.
    Of a service whose spec names no `abort`, which sees only that its client is gone, new requests are judged here.

    Fix: On an abort end the process group of each running command, and close the connection to the model at once. Wait
    a few seconds at most for what does not end. Where you catch what a tool raises, let a cancellation through.
    """
    for turn in history.turns:
        if turn.aborted is not None:
            yield from _judge(history, turn, turn.aborted, history.stretched(grace_s))
            yield from _goes_on(turn, turn.aborted)
            yield from _of_its_end(history, turn, turn.aborted, history.stretched(ends_s))
            if turn.aborted.hangs_up:
                yield from _of_requests(history, turn, turn.aborted, grace_s)


def _judge(history: History, turn: Turn, abort: AbortSent, allowed_s: float) -> Iterator[Verdict]:
    late_s = abort.at_s + allowed_s + history.frozen_s(abort.at_s, float("inf"))
    late = [end for end in _ends(turn, abort, next_message(history, abort)) if end[0] > late_s]
    for end_s, went_on, proof in late:
        says = f"{turn}: {went_on} for {end_s - abort.at_s:.1f} s after the abort"
        span = {"over_s": end_s - late_s, "since_s": abort.at_s, "until_s": end_s}
        yield too_late(history, says, (abort, proof), **span)
    if not late:
        yield passed(because=f"{turn}: nothing went on for more than {allowed_s:.1f} s after the abort")


def _of_requests(history: History, turn: Turn, abort: AbortSent, grace_s: float) -> Iterator[Verdict]:
    """Of a service that works on for a client that is gone."""
    if late := late_requests(history, turn, abort, grace_s):
        last_s = late[-1].at_s - abort.at_s
        says = f"{turn}: request {late[-1].number} came {last_s:.1f} s after its client was gone"
        span = {"over_s": last_s - history.stretched(grace_s), "since_s": abort.at_s, "until_s": late[-1].at_s}
        yield too_late(history, says, (abort, *requests(late)), **span)


def _goes_on(turn: Turn, abort: AbortSent) -> Iterator[Verdict]:
    """A request behind the abort has the result of a tool that worked when it was sent."""
    working = [use for use in turn.tool_uses if _works(use, abort)]
    for use in working:
        later = [it for it in use.results if it.turn == turn.number and it.id > abort.id]
        if later:
            says = f"{turn}: {name_of_call(use)} was stopped, and request {later[0].call} goes on with its result"
            yield fail(says, (abort, later[0]))


def _works(use: ToolUse, abort: AbortSent) -> bool:
    """Whether a command, or a call of a tool server, had begun at the abort and had not ended."""
    began = any(start.id < abort.id for start in use.started)
    return began and not any(done.id < abort.id for done in use.done)


def _of_its_end(history: History, turn: Turn, abort: AbortSent, allowed_s: float) -> Iterator[Verdict]:
    if turn.end is None or turn.deadline is not None or turn.killed is not None:
        return
    took_s = turn.end.at_s - abort.at_s - history.frozen_s(abort.at_s, turn.end.at_s)
    if took_s > allowed_s:
        span = {"over_s": took_s - allowed_s, "since_s": abort.at_s, "until_s": turn.end.at_s}
        yield too_late(history, f"{turn} ended {took_s:.1f} s after its abort", (abort, turn.end), **span)


def _ends(turn: Turn, abort: AbortSent, until: int) -> Iterator[tuple[float, str, Event]]:
    """The end in seconds of all that was under way at the abort, what went on, and its event."""
    for use in turn.tool_uses:
        for done in _ran_on(use, abort):
            yield done.at_s, f"{name_of_call(use)} ran on", done
    for call in turn.calls:
        end_s = _open_until(call, abort, until)
        if end_s is not None:
            yield end_s, f"request {call.number} stayed open", call.arrived


def _ran_on(use: ToolUse, abort: AbortSent) -> list[BeaconSeen]:
    """Ends of the command after the abort, if it had begun before."""
    began = any(start.id < abort.id for start in use.started)
    return [done for done in use.done if began and done.id > abort.id and not done.background]


def _open_until(call: Call, abort: AbortSent, until: int) -> float | None:
    """When the agent's side ended a call that was open at the abort; None if it was not open, or is still open."""
    if call.arrived.id > abort.id or not call.open_after(abort.id) or call.stopped_by:
        return None
    end = call.hung_up or call.ended or call.refused
    return end.at_s if end is not None and end.id < until else None
