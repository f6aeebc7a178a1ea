"""Whether an answer shows the model's words: a whole reply, the part of a cut one, or the last words of a turn."""

import re
from collections.abc import Sequence

from wedgehog.harness.record.call_failures import spent_on_thoughts
from wedgehog.harness.record.error_words import plain
from wedgehog.harness.record.views import Call, Turn

CUT_TEXT_CHARS = 12
CUT_NONCE_CHARS = 6
LONG_CHARS, BEGINNING_CHARS, END_CHARS = 2000, 200, 100
"""Letters and digits of a long reply, of its beginning and of its end."""
_CUT_MARK = re.compile(
    r"…|\.\.\.|\b(truncat|cut\b|shorten|omit|too long|limit|characters|continue|part \d)|\d/\d|\]\s*$", re.IGNORECASE
)
_MARK_CHARS = 300
"""A mark stands in the last characters."""


def may_be_last_words(turn: Turn, answer: str) -> bool:
    """Whether no answer came that these words could hide: the agent stopped at a limit, or says what the model said."""
    last = turn.main_calls[-1] if turn.main_calls else None
    if last is None or last.ended is None:
        return True
    if leaves_its_first_calls(turn, last):
        return False
    at_limit = last.ended.stop == "tool" and last.arrived.step > 1
    said_nothing = not last.ended.text_delivered.strip() and not last.ended.tool_calls
    empty = spent_on_thoughts(last) or (last.ended.stop in ("end", "tool") and said_nothing)
    no_answer = last.ended.stop == "refusal" or empty
    return at_limit or no_answer or any(shows_cut(call, turn, answer) for call in turn.main_calls)


def leaves_its_first_calls(turn: Turn, last: Call) -> bool:
    """Whether the first reply of the turn calls commands, and none has begun: a limit needs a round of tools."""
    calls = last.ended.tool_calls if last.ended is not None else ()
    known = bool(calls) and all(it.whole and it.traced and not it.asks_user for it in calls)
    begun = {use.token for use in turn.tool_uses if use.started}
    return last.ok and last.arrived.step == 1 and known and not any(it.token in begun for it in calls)


def is_last_reply(turn: Turn, answer: str) -> bool:
    """Whether the last reply came whole, and its words are shown: a refusal after a retry, for example."""
    last = turn.main_calls[-1] if turn.main_calls else None
    if last is None or last.ended is None or not last.ok or (last.damaged and not last.ended.says_all):
        return False
    said, shown = plain(last.ended.text_delivered), plain(answer)
    as_it_came = said == shown or (len(said) >= CUT_TEXT_CHARS and said in shown)
    return last.ended.stop in ("end", "refusal") and bool(said) and as_it_came


def shows_cut(call: Call, turn: Turn, answer: str) -> bool:
    """Whether part of a reply, or of the turn's nonce in it, is in the answer."""
    delivered, shown = plain(call.ended.text_delivered if call.ended else ""), plain(answer)
    nonce = plain(turn.stimulus.nonce) if turn.stimulus else ""
    if len(delivered) >= CUT_TEXT_CHARS and any(
        delivered[i : i + CUT_TEXT_CHARS] in shown for i in range(len(delivered) - CUT_TEXT_CHARS + 1)
    ):
        return True
    part = nonce[:CUT_NONCE_CHARS]
    return len(part) == CUT_NONCE_CHARS and part in delivered and part in shown


def cut_part(turn: Turn, cut: Sequence[Call], answer: str) -> str:
    """The answer from its first line that shows a part of a cut reply: a log may stand before it."""
    lines = answer.splitlines()
    shown = (n for n, line in enumerate(lines) if any(shows_cut(call, turn, line) for call in cut))
    return "\n".join(lines[next(shown, 0) :])


def is_what_came(cut: Sequence[Call], answer: str) -> bool:
    """Whether the answer, or its last line, is all that came of a cut reply (or of several), however short that is."""
    came = [plain(call.ended.text_delivered) for call in cut if call.ended]
    shown = {plain(answer), plain(answer.strip().rpartition("\n")[2])}
    return not shown.isdisjoint({text for text in (*came, "".join(came)) if text})


def shows_only_its_beginning(turn: Turn, answer: str) -> bool:
    """Whether a long reply came whole, and the answer has its beginning, but neither its end nor a mark of a cut."""
    last = turn.main_calls[-1] if turn.main_calls else None
    if last is None or last.ended is None or not last.ok or last.damaged or last.ended.stop != "end":
        return False
    said, shown = plain(last.ended.text_delivered), plain(answer)
    if len(said) < LONG_CHARS or said[:BEGINNING_CHARS] not in shown or said[-END_CHARS:] in shown:
        return False
    return _CUT_MARK.search(answer.rstrip()[-_MARK_CHARS:]) is None
