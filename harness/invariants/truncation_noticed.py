"""A cut reply is not shown as an answer."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends, main_calls_of
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed


@invariant("truncation_noticed")
def truncation_noticed(history: History) -> Iterator[Verdict]:
    """Part of a reply that was cut, or stopped at max_tokens, is not shown as if it were the whole answer.

    Fix: Look how the reply ended. Without its last event, or with `max_tokens` or `length` as its stop reason, it
    is cut: try again, continue it, or tell the user.
    """

    for turn in history.turns:
        cut = [call.ended for call in main_calls_of(turn) if call.ended and not call.ok]
        if not cut:
            continue
        outcome = outcome_of(turn, history)
        if outcome.kind == "truncated":
            yield fail(f"{turn}: {outcome.how}", (*cut, *ends(turn)))
        elif outcome.kind != "unfinished":
            yield passed()
