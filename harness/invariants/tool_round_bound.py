"""A loop of tool calls ends."""

from collections.abc import Iterator

from wedgehog.harness.history import History
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import requests, steps_of, together
from wedgehog.harness.verdict import Verdict, fail, passed


@invariant("tool_round_bound")
def tool_round_bound(history: History, *, tool_rounds: int = 50) -> Verdict:
    """A turn has at most `tool_rounds` rounds of tool calls.

    A model that always asks for one more tool must not be able to spend for ever (incident endless-loop). Fifty is
    above the limits that agents commonly set themselves.
    """

    def each() -> Iterator[Verdict]:
        for turn in history.turns:
            steps = steps_of(turn)
            rounds = max((step.number for step in steps), default=1) - 1
            if rounds > tool_rounds:
                calls = [call for step in steps if step.number - 1 > tool_rounds for call in step.calls]
                yield fail(f"{turn} had {rounds} rounds of tool calls, {tool_rounds} allowed", requests(calls))
            elif rounds:
                yield passed(f"{turn} had {rounds} rounds of tool calls" if rounds > 1 else "")

    return together(each())
