"""A conversation carries each message of its user once."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import main_calls_of, requests
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("said_once", level="strict")
def said_once(history: History) -> Iterator[Verdict]:
    """No request of the conversation carries one message of its user twice, as two equal messages.

    The copies are paid with each later request, and the model may do the work twice. It usually means that two places
    add the message, or that a retry adds it again. Judged on messages of the user whose whole text is the same; a
    reminder that quotes the message is another one.

    Fix: Add the message to the conversation in one place, before the first try, and not again in a retry.
    """
    for turn in history.turns:
        calls = main_calls_of(turn)
        doubled = next((call for call in calls if call.arrived.turns_doubled), None)
        if doubled is not None:
            which = ", ".join(map(str, doubled.arrived.turns_doubled))
            says = f"request {doubled.number} carries the message of turn {which} twice"
            yield fail(f"{turn}: {says}", requests([doubled]))
        elif calls:
            yield passed()
