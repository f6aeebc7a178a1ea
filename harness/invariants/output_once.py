"""No part of a reply is shown twice."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends
from wedgehog.harness.record.error_words import plain
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Turn

LEAST_CHARS = 12
"""Letters and digits of a text that no answer repeats by chance."""


@invariant("output_once", level="strict")
def output_once(history: History) -> Iterator[Verdict]:
    """No text of the model is shown twice in one answer.

    After a retry the user reads the half reply and then the whole one, or the same answer twice. Judged on answers: the
    nonce of the turn, and the text that a broken reply had delivered.

    Fix: When a retry begins, discard the text of the broken reply, or show the whole answer only when its stream
    has ended.
    """
    for turn in history.turns:
        shown = plain(turn.end.answer) if turn.end is not None else ""
        if not shown:
            continue
        twice = _twice(turn, shown)
        if twice:
            yield fail(f"{turn}: its answer shows {twice}", ends(turn))
        else:
            yield passed(because=f"{turn}: its answer shows each text once")


def _twice(turn: Turn, shown: str) -> str:
    """What the answer shows twice, in words; else empty."""
    nonce = plain(turn.stimulus.nonce) if turn.stimulus is not None else ""
    if len(nonce) >= LEAST_CHARS and shown.count(nonce) > 1:
        return f"the same reply {shown.count(nonce)} times"
    whole = "".join([plain(call.ended.text_delivered) for call in turn.main_calls if call.ended and call.ok])
    broken = [plain(call.ended.text_delivered) for call in turn.main_calls if call.ended is not None and not call.ok]
    again = any(_more_often(text, shown, whole) for text in broken)
    return "the text of a broken reply, and then the same text again" if again else ""


def _more_often(broken: str, shown: str, whole: str) -> bool:
    """Whether an answer shows a broken reply, or the first half of it, more often than the whole replies say it.

    A connection that is reset loses the last bytes that the agent has not read.
    """
    half = broken[: len(broken) // 2]
    texts = [text for text in (broken, half) if len(text) >= LEAST_CHARS]
    return any(shown.count(text) > max(1, whole.count(text)) for text in texts)
