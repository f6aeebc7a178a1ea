"""Tool calls and results pair, on the wire: a history that is repaired at load is correct, whatever is on disk."""

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import calls_of, stray_calls
from wedgehog.harness.record.history import Call, History
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed


@invariant("tool_call_pairing")
def tool_call_pairing(history: History) -> Verdict:
    """No request is refused because its tool calls and tool results do not pair.

    A session whose history holds an orphan is refused by the provider from then on (incident dangling-call). Only a
    refusal for pairing counts: another one of our validator's may be our mistake.
    """
    calls = [call for turn in history.turns for call in calls_of(turn)] + list(stray_calls(history))
    for call in calls:
        if _unpaired(call):
            assert call.refused is not None  # noqa: S101  that is what unpaired means
            says = f"request {call.number} (turn {call.arrived.turn}) was refused: {call.refused.message}"
            return fail(says, (call.arrived, call.refused))
    if not history.tool_uses and not any(call.arrived.results for call in calls):
        return nothing("no tool was called")
    return passed()


def _unpaired(call: Call) -> bool:
    return call.refused is not None and call.refused.pairing and not call.refused.scripted
