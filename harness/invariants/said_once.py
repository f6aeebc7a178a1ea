"""A conversation carries each message once, of its user and of the model."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import main_calls_of, requests
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call


@invariant("said_once", level="strict")
def said_once(history: History) -> Iterator[Verdict]:
    """No request of the conversation carries one message of its user or of the model twice, as two equal messages.

    The copies are paid with each later request, and the model may do the work twice. It usually means that two places
    add the message, or that a retry adds it again. Judged on messages whose whole text is the same: a reminder that
    quotes the message is another one, and words that the model said twice may stand there twice.

    Fix: Add the message to the conversation in one place, before the first try, and not again in a retry.
    """
    for turn in history.turns:
        calls = main_calls_of(turn)
        doubled = next((call for call in calls if call.arrived.turns_doubled or call.arrived.replies_doubled), None)
        if doubled is not None:
            yield fail(f"{turn}: request {doubled.number} carries {_what(doubled)} twice", requests([doubled]))
        elif calls:
            yield passed(because=f"{turn}: no request carries a message twice")


def _what(doubled: Call) -> str:
    turns, replies = doubled.arrived.turns_doubled, doubled.arrived.replies_doubled
    if turns:
        return f"the message of turn {', '.join(map(str, turns))}"
    return f"the model's reply to call {', '.join(map(str, replies))}"
