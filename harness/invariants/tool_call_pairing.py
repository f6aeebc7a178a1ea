"""Tool calls and results pair, on the wire: a history that is repaired at load is correct, whatever is on disk."""

from wedgehog.harness.history import Call, History
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import calls_of, refused_by_us, stray_calls
from wedgehog.harness.verdict import Verdict, fail, inconclusive, nothing, passed


@invariant("tool_call_pairing")
def tool_call_pairing(history: History) -> Verdict:
    """No request is refused because its tool calls and tool results do not pair.

    A session whose history holds an orphan is refused by the provider from then on (incident dangling-call). Another
    refusal by our validator may be our mistake: then it can't be told.
    """
    calls = [call for turn in history.turns for call in calls_of(turn)] + list(stray_calls(history))
    for call in calls:
        if _unpaired(call):
            assert call.refused is not None  # noqa: S101  that is what unpaired means
            says = f"request {call.number} (turn {call.arrived.turn}) was refused: {call.refused.message}"
            return fail(says, (call.arrived, call.refused))
    other = refused_by_us(calls)
    if other is not None and other.refused is not None:
        says = f"our validator refused request {other.number} for another reason: {other.refused.message}"
        return inconclusive(says, (other.arrived, other.refused))
    if not history.tool_uses and not any(call.arrived.results for call in calls):
        return nothing("no tool was called")
    return passed()


def _unpaired(call: Call) -> bool:
    return call.refused is not None and call.refused.pairing and not call.refused.scripted
