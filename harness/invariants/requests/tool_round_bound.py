"""A loop of tool calls ends."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.requests.side_call_bound import side_calls
from wedgehog.harness.invariants.scope import main_calls_of, over, requests, tool_uses_of
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import ToolUse, Turn

TOOL_ROUNDS = 50
"""The stock bound."""


@invariant("tool_round_bound", by_calls=True)
def tool_round_bound(history: History, *, tool_rounds: int = TOOL_ROUNDS) -> Iterator[Verdict]:
    """A turn, and each subagent in it, has at most `tool_rounds` rounds of tool calls.

    A model that always asks for one more tool must not cause endless cost (incident endless-loop). Fifty is above the
    usual limits of agents. A round counts once one of its tools has started, or its results were sent. A subagent's
    counts once its results were sent; its bound is the stock one, or `tool_rounds` if that is higher.

    Fix: End a turn after a fixed number of tool rounds, and tell the user. End a subagent after its own, and tell its
    parent's model. If the agent states a higher limit, write it in the spec, with the place where it stands:
    `limits: {tool_rounds: {at_most: 80, why: "its README"}}`.
    """
    for turn in history.turns:
        sent = [call for call in main_calls_of(turn) if call.arrived.step > 1]
        started = [(use.step, beacon) for use in tool_uses_of(turn) for beacon in _started(use, turn)]
        rounds = max([*(call.arrived.step - 1 for call in sent), *(step for step, _ in started)], default=0)
        until = " until it was stopped" if over(turn) is not None else ""
        if rounds > tool_rounds:
            calls = requests(call for call in sent if call.arrived.step - 1 > tool_rounds)
            beyond = calls or [beacon for step, beacon in started if step > tool_rounds]
            yield fail(f"{turn} had {rounds} rounds of tool calls{until}, {tool_rounds} allowed", beyond)
        elif rounds:
            yield passed(f"{turn} had {rounds} rounds of tool calls{until}" if rounds > 1 else "")
    allowed = max(tool_rounds, TOOL_ROUNDS)
    for side in side_calls(history):
        sent = [calls[0] for step, calls in side.steps if step > 1]
        if len(sent) > allowed:
            says = f"{side.name} of turn {side.turn} had {len(sent)} rounds of tool calls, {allowed} allowed"
            yield fail(says, requests(sent[allowed:]))


def _started(use: ToolUse, turn: Turn) -> Iterator[BeaconSeen]:
    """Starts before the turn's stop or deadline."""
    stop = over(turn)
    return (beacon for beacon in use.started if stop is None or beacon.id < stop.id)
