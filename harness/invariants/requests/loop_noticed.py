"""A model that makes the same call again and again is stopped, or told."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import over, tool_uses_of
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import ToolUse, Turn

EQUAL_CALLS = 8
"""Guards of agents stop after three to eight."""
LEAST = 3
"""Fewer equal calls are no loop."""


@invariant("loop_noticed", level="strict")
def loop_noticed(history: History, *, equal_calls: int = EQUAL_CALLS) -> Iterator[Verdict]:
    """At most `equal_calls` rounds in a row have the same call, to the letter, with the same result.

    A limit of rounds ends such a loop too, but late: all rounds up to it are paid for nothing. An agent may end the
    turn, ask its user, or tell the model in a result that it repeats itself; then the result is another one.

    Fix: Compare each call with the one before, by its name and its arguments. After a few equal ones with equal results
    say so to the model in the result; if it goes on, end the turn and tell the user.
    """
    for turn in history.turns:
        longest = _longest(turn)
        until = " until it was stopped" if over(turn) is not None else ""
        says = f"{turn}: the same call with the same result came {len(longest)} times in a row{until}"
        if len(longest) > equal_calls:
            yield fail(f"{says}, {equal_calls} allowed", (longest[0].reply, longest[-1].reply))
        elif len(longest) >= LEAST:
            yield passed(because=says)


def _longest(turn: Turn) -> Sequence[ToolUse]:
    """The longest run of equal calls with equal results in a turn."""
    uses = sorted(tool_uses_of(turn), key=lambda use: use.step)
    runs = (list(run) for key, run in groupby(uses, _key) if key is not None)
    return max(runs, key=len, default=())


def _key(use: ToolUse) -> tuple[str, int, bool] | None:
    """What equal calls with equal results have in common; None for a call without a result or a digest."""
    sent = next(iter(use.carried), None)
    if sent is None or not use.offered.digest:
        return None
    return use.offered.digest, sent.chars, sent.is_error
