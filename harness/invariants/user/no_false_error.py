"""Where nothing failed its user reads no error, and after a stop none of the agent's own program."""

import re
from collections.abc import Iterator
from typing import Final

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends, over
from wedgehog.harness.invariants.user.cause_told import words_read
from wedgehog.harness.invariants.user.no_false_cause import CRASH
from wedgehog.harness.record.error_words import plain, short
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.run import SessionPlanted
from wedgehog.harness.record.events.turn import PermissionAsked, TurnEnded
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of, unusual
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, ToolUse, Turn

_NONE: Final = r"(?!\W{0,3}(?:none|null|nil|no|0|false)\b)"
_ERROR: Final = re.compile(
    rf"\bno (response|reply|answer)\b|\bwent wrong\b|\b(an|unexpected|unknown|internal)( \w+)? error\b"
    rf"|\berror ?[:(\]]{_NONE}|\bfailed to (get|generate|send|process|complete|respond|answer)\b|{CRASH.pattern}",
    re.IGNORECASE,
)
"""Words of an agent that has no answer. They are few on purpose: a footer may count errors, or name a limit."""


@invariant("no_false_error", level="strict")
def no_false_error(history: History) -> Iterator[Verdict]:
    """Beside a whole answer its user reads no error, if nothing failed; after a stop none of the program's own.

    Its user does not know which of the two is true, and asks again. Judged in answered turns where the user reads
    messages (a chat, a page, ACP) or where the spec says which text is an error: no fault has fired in the run so far,
    each reply came whole, no tool failed, and no turn was stopped. A last reply without words is no failure if a tool
    had sent the answer. Words such as "no response", "something went wrong", "Error: …" and exceptions of a program are
    red, if the model did not say them. After a stop by its user words such as "interrupted" or "aborted" are right;
    an exception such as TypeError, or "Cannot read properties of undefined", is a mistake of the program.

    Fix: Count what a stream or a tool has sent as sent, and show a canned sentence only where nothing was. An edit that
    changes nothing has not failed. Expect a stop wherever the program waits.
    """
    for turn in history.turns:
        if turn.end is None:
            continue
        if turn.aborted is not None or turn.gave_up is not None:
            yield _after_a_stop(history, turn, turn.end)
        elif outcome_of(turn, history).kind == "answered" and _nothing_failed(history, turn, turn.end):
            yield _beside_an_answer(history, turn, turn.end)


def _after_a_stop(history: History, turn: Turn, end: TurnEnded) -> Verdict:
    crash = next((line for line in _own_lines(turn, unusual(words_read(end), history)) if CRASH.search(line)), "")
    if crash:
        return fail(f"{turn} was stopped, and its user reads a mistake of the program: {short(crash)}", ends(turn))
    return passed(because=f"{turn}: after the stop its user reads no mistake of the program")


def _beside_an_answer(history: History, turn: Turn, end: TurnEnded) -> Verdict:
    answer = end.answer if end.appends else ""
    error = end.error if history.run.error_at_path else ""
    wrong = next((line for line in _own_lines(turn, f"{answer}\n{error}") if _ERROR.search(line)), "")
    if wrong:
        return fail(f"{turn} was answered and nothing failed, and its user reads: {short(wrong)}", ends(turn))
    return passed(because=f"{turn}: its user reads no error beside the answer")


def _own_lines(turn: Turn, text: str) -> Iterator[str]:
    """The lines that no model said in the turn, and that do not have its answer."""
    said = "".join(plain(call.ended.text_delivered) for call in turn.calls if call.ended is not None)
    nonce = plain(turn.stimulus.nonce) if turn.stimulus is not None else ""
    for line in text.splitlines():
        words = plain(line)
        if words and words not in said and not (nonce and nonce in words):
            yield line


def _nothing_failed(history: History, turn: Turn, end: TurnEnded) -> bool:
    """Whether nothing failed in the run before the end of this turn, but for a last reply without words."""
    calls = [call for it in history.turns if it.number <= turn.number for call in it.calls]
    silent = turn.main_calls[-1] if turn.main_calls and _says_nothing(turn.main_calls[-1]) else None
    struck = [*turn.kept_away, *turn.held_up, *(it for it in history.of(FaultFired) if it.id < end.id)]
    before = [it for it in history.turns if it.number <= turn.number]
    asked = any(it.chosen.startswith("reject") or not it.chosen for it in history.of(PermissionAsked))
    return (
        all(fired.call is not None and silent is not None and fired.call == silent.number for fired in struck)
        and all(call.intact for call in calls if call is not silent)
        and not any(over(it) for it in before)
        and not any(map(_may_have_failed, history.tool_uses))
        and not history.beside(turn)
        and not asked
        and history.first(SessionPlanted) is None
    )


def _says_nothing(call: Call) -> bool:
    """Whether its reply came whole, and has neither words nor a tool call."""
    return call.ok and call.ended is not None and not call.ended.tool_calls and not call.ended.text_delivered.strip()


def _may_have_failed(use: ToolUse) -> bool:
    """Whether a tool failed, or may have: by its exit code, the mark of its result, or a word in it."""
    told = any(it.is_error or not it.signs_known or "failed" in (it.signs or ()) for it in use.carried)
    return told or any(done.exit_code for done in use.done)
