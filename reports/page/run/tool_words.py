"""What the narrative says of tool calls and their results."""

from collections.abc import Sequence

from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.views import ToolUse
from wedgehog.reports.words import one_line

TOKENS_SHOWN = 4


def errors_among(results: Sequence[ToolResult]) -> str:
    """How many of them are errors; empty if none is."""
    errors = sum(result.is_error for result in results)
    return f", {errors} of them {'an error' if errors == 1 else 'errors'}" if errors else ""


def tokens(results: Sequence[ToolResult]) -> str:
    """The tool calls to which they belong, where all are known."""
    tokens = [result.token for result in results]
    if not tokens or not all(tokens):
        return ""
    more = f" and {len(tokens) - TOKENS_SHOWN} more" if len(tokens) > TOKENS_SHOWN else ""
    return f", of tool call {', '.join(tokens[:TOKENS_SHOWN])}{more}"


def unended(use: ToolUse) -> bool:
    """Whether it has a result although its command did not end."""
    return bool(use.started and not use.done and use.results)


def for_unended(use: ToolUse) -> str:
    """The result that an agent wrote for a command that did not end."""
    at = use.results[0]
    result = next((it for it in at.results if it.token == use.token), None)
    as_error = " as an error" if result is not None and result.is_error else ""
    name = one_line(use.offered.name, 40)
    return f"Tool call {use.token} {name} did not end; from request {at.turn}.{at.step} on it has a result{as_error}."


def ran(started: Sequence[object], done: Sequence[object]) -> str:
    """How far a command came; empty if it did not begin."""
    if done:
        return " (it ran to the end)"
    return " (it started and did not end)" if started else ""
