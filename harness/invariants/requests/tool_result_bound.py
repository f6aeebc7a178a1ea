"""A tool's result is cut before it fills the context."""

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import calls_of
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, nothing, passed

TRUNCATION_MARK_CHARS = 100
"""Room for a mark that says where the result was cut."""


@invariant("tool_result_bound")
def tool_result_bound(history: History, *, tool_result_chars: int = 4_000_000) -> Verdict:
    """A request carries at most `tool_result_chars` characters of one tool result.

    The largest models read a million tokens, of about four characters each: a longer result is refused, and so is each
    later request that carries it. 100 more are allowed for a mark of the cut.

    Fix: Cut a tool result to a fixed length before it is stored, and say in its text that it was cut.
    """
    carried = [
        (result, call.arrived)
        for turn in history.turns
        for call in calls_of(turn)
        for result in call.arrived.results
        if not result.in_text
    ]
    if not carried:
        return nothing("no tool result was carried, or only as part of a text")
    result, request = max(carried, key=lambda pair: pair[0].chars)
    if result.chars > tool_result_chars + TRUNCATION_MARK_CHARS:
        says = f"request {request.call} carries a tool result of {result.chars} characters, {tool_result_chars} allowed"
        return fail(says, (request,))
    return passed(f"the longest tool result had {result.chars} characters")
