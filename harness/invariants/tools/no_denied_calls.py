"""A tool call that the user denied does not run."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import after_deadline
from wedgehog.harness.invariants.tool_results import denied
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.events.turn import PermissionAsked
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("no_denied_calls")
def no_denied_calls(history: History) -> Iterator[Verdict]:
    """A tool call that its user denied, or was asked about and did not answer, does not run.

    The user reads that it was denied, and the command has changed what they wanted to keep. Judged by the call's own
    beacon, where the request for permission names the call by its id or shows its command. The last request for a call
    counts: one that is denied and asked for again may be allowed. A command that began before its user was asked is not
    judged.

    Fix: Keep each open question with the id of its own call, so that an answer reaches this call only. Take out a
    denied call before the calls of the reply are run.
    """
    asked: dict[str, PermissionAsked] = {}
    for event in history.events:
        if isinstance(event, PermissionAsked):
            asked |= dict.fromkeys(event.tokens, event)
        elif isinstance(event, BeaconSeen) and event.phase == "started" and event.token in asked:
            yield _judge(history, event, asked[event.token])
    yield from (passed(because=f"tool call {token} was denied") for token in denied(history))


def _judge(history: History, start: BeaconSeen, asked: PermissionAsked) -> Verdict:
    if asked.chosen.startswith("allow") or after_deadline(history, start):
        return passed(because=f"tool call {start.token} ran only after it was allowed")
    said = "denied it" if asked.chosen else "had not answered"
    waited_s = start.at_s - asked.at_s
    return fail(f"tool call {start.token} ran {waited_s:.1f} s after its user {said}", (asked, start))
