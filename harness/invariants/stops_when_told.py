"""After its user has stopped a turn, its work ends: no tool runs on, and no request stays open."""

from collections.abc import Iterator

from wedgehog.harness.invariants.overload import too_late
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call, next_message
from wedgehog.harness.record.event import AbortSent, BeaconSeen
from wedgehog.harness.record.history import Call, History, ToolUse, Turn
from wedgehog.harness.record.verdict import Verdict, passed


@invariant("stops_when_told", level="strict", unscaled=("grace_s",))
def stops_when_told(history: History, *, grace_s: float = 2) -> Iterator[Verdict]:
    """After an abort no command runs to its end, and requests in flight are hung up within `grace_s`.

    A command that runs on works against its user, and a stream that nobody reads is paid to its last token.
    `no_spend_after_abort` judges new requests.
    """
    for turn in history.turns:
        if turn.aborted is not None:
            yield from _judge(history, turn, turn.aborted, history.stretched(grace_s))


def _judge(history: History, turn: Turn, abort: AbortSent, allowed_s: float) -> Iterator[Verdict]:
    late_s = abort.at_s + allowed_s + history.frozen_s(abort.at_s, float("inf"))
    until = next_message(history, abort)
    found = False
    for use in turn.tool_uses:
        for done in _ran_on(use, abort):
            if done.at_s > late_s:
                found = True
                says = f"{turn}: {name_of_call(use)} ran on for {done.at_s - abort.at_s:.1f} s after the abort"
                yield _late(history, says, abort, done.at_s, late_s, done)
    for call in turn.calls:
        end_s = _open_until(call, abort, until)
        if end_s is not None and end_s > late_s:
            found = True
            says = f"{turn}: request {call.number} stayed open for {end_s - abort.at_s:.1f} s after the abort"
            yield _late(history, says, abort, end_s, late_s, call.arrived)
    if not found:
        yield passed()


def _late(history: History, says: str, abort: AbortSent, end_s: float, late_s: float, *proof: object) -> Verdict:
    evidence = (abort, *proof)
    return too_late(history, says, evidence, over_s=end_s - late_s, since_s=abort.at_s, until_s=end_s)  # type: ignore[arg-type]


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
