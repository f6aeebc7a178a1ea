"""Tool calls and results pair in each request, whatever the session file holds."""

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import calls_of, stray_calls
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed


@invariant("tool_call_pairing")
def tool_call_pairing(history: History) -> Verdict:
    """No request is refused because its tool calls and tool results do not pair.

    The provider refuses each later request of a session with an orphan (incident dangling-call). Only a refusal for
    pairing counts: another refusal by our validator may be our mistake.

    Fix: Before each request, check that every tool call in the history has exactly one result right after it, and
    add a result such as `interrupted` where none is. Do this also when a session is loaded.
    """
    calls = [call for turn in history.turns for call in calls_of(turn)] + list(stray_calls(history))
    for call in calls:
        if call.refused is not None and call.refused.pairing and not call.refused.scripted:
            says = f"request {call.number} (turn {call.arrived.turn}) was refused: {call.refused.message}"
            return fail(says, (call.arrived, call.refused))
    if not history.tool_uses and not any(call.arrived.results for call in calls):
        return nothing("no tool was called")
    return passed(because=f"requests: {len(calls)}; none was refused because its tool calls and results do not pair")
