"""The model reads that its call was cut at the token limit."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import name_of_call, result_in_turn, tool_uses_of
from wedgehog.harness.invariants.tool_results import disturbed
from wedgehog.harness.record.events.call import ToolResult
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import ToolUse


@invariant("cut_call_told", level="strict")
def cut_call_told(history: History) -> Iterator[Verdict]:
    """The result of a call that was cut at the token limit says so, or that its text has no end.

    A model that reads of a missing parameter, or only that its arguments are wrong, sends the same long call again, and
    is cut again. Judged where a reply stopped at its limit of tokens inside a call, the call did not run, and a request
    of the turn carries a result for it. A word such as "truncated", "limit", "tokens" or "too long" is enough, and so
    are the words of a parser ("unterminated string", "unexpected end"). A result in another language than English
    passes.

    Fix: Look at the stop reason before the arguments. Where a reply stopped at its limit, send as the result that the
    call was cut there, and that a shorter one, or several, will fit.
    """
    for turn in history.turns:
        if not disturbed(history, turn):
            yield from (it for use in tool_uses_of(turn) if _was_cut(use) for it in _told(use))


def _was_cut(use: ToolUse) -> bool:
    return use.reply.stop == "max_tokens" and not use.offered.whole and not use.offered.wrapped and not use.started


def _told(use: ToolUse) -> Iterator[Verdict]:
    sent = result_in_turn(use)
    if sent is None or not sent[1].signs_known:
        return
    if _says_so(sent[1]):
        yield passed(because=f"the result of {name_of_call(use)} says that it was cut")
    else:
        says = f"{name_of_call(use)} was cut at the token limit, and its result does not say so"
        yield fail(f"{says} ({sent[1].chars} characters)", (use.reply, sent[0]))


def _says_so(result: ToolResult) -> bool:
    return not {"cut_off", "foreign"}.isdisjoint(result.signs or ())
