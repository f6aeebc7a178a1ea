"""A conversation carries each message once, of its user and of the model."""

from collections import Counter
from collections.abc import Iterator, Sequence

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
    quotes the message is another one, and words that the model said twice may stand there twice. Two results of one
    tool call count too, where it was the only one of its reply.

    Fix: Add the message to the conversation in one place, before the first try, and not again in a retry.
    """
    for turn in history.turns:
        calls = main_calls_of(turn)
        doubled = next((call for call in calls if call.arrived.turns_doubled or call.arrived.replies_doubled), None)
        again = _results_again(calls)
        if doubled is None and again is not None:
            yield fail(f"{turn}: request {again[0].number} carries two results of {again[1]}", requests(again[:1]))
        elif doubled is not None:
            yield fail(f"{turn}: request {doubled.number} carries {_what(doubled)} twice", requests([doubled]))
        elif calls:
            yield passed(because=f"{turn}: no request carries a message twice")


def _results_again(calls: Sequence[Call]) -> tuple[Call, str] | None:
    """The first call that carries two results of the one tool call of a reply, and which that is."""
    replies = [said.ended.tool_calls for said in calls if said.ended is not None]
    alone = {offered[0].token for offered in replies if len(offered) == 1}
    for call in calls:
        results = Counter(it.token for it in call.arrived.results if it.id and it.token in alone and not it.in_text)
        token = next((token for token, count in results.items() if count > 1), None)
        if token is not None:
            half = any(it.token == token and not it.whole for offered in replies for it in offered)
            return call, f"tool call {token}" + (", of which a reply that broke off had brought a part" if half else "")
    return None


def _what(doubled: Call) -> str:
    turns, replies = doubled.arrived.turns_doubled, doubled.arrived.replies_doubled
    if turns:
        return f"the message of turn {', '.join(map(str, turns))}"
    return f"the model's reply to call {', '.join(map(str, replies))}"
