"""No part of a reply is shown twice."""

import re
from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends
from wedgehog.harness.record.error_words import plain, uncoloured
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Turn

LEAST_CHARS = 12
"""Letters and digits of a text that no answer repeats by chance."""
LONG_CHARS, STRETCH_CHARS = 1000, 100
"""Those of a long reply, and of a stretch of it."""
_BEGINS_AGAIN = re.compile(
    r"re-?try|\b(try|tries|trying|begin\w*|start\w*|ask\w*) (it )?(again|over|anew)|restart|from the (start|beginning)"
    r"|once more|attempt \d",
    re.IGNORECASE,
)
"""Words with which an agent says that the reply begins again."""


@invariant("output_once", level="strict")
def output_once(history: History) -> Iterator[Verdict]:
    """No text of the model is shown twice in one answer.

    After a retry the user reads the half reply and then the whole one, or the same answer twice. Judged on answers: the
    nonce of the turn, the text that a broken reply had delivered, and any hundred letters of a reply of more than a
    thousand: a terminal keeps what has left its screen, and what is drawn anew from its beginning stands there twice. A
    program that streams cannot take back what it printed: a line such as "[retrying]" between the two texts, or on its
    stderr, tells its user that they are one. An answer that its chat never confirmed may be sent again: an agent
    cannot know whether it has arrived.

    What the model says before a tool call is judged too, by its whole text: a front end that adds the words of each
    step to those before shows them again and again.

    Fix: When a retry begins, discard the text of the broken reply, or show the whole answer only when its stream
    has ended. If it is printed already, say that the reply begins again.
    """
    unconfirmed = {fired.turn for fired in history.of(FaultFired) if fired.link == "chat"}
    for turn in history.turns:
        shown = plain(turn.end.answer) if turn.end is not None else ""
        if not shown:
            continue
        twice = _twice(turn, shown, may_repeat=turn.number in unconfirmed)
        if twice and _told(turn):
            yield passed(because=f"{turn}: its answer shows a text twice, and says that the reply begins again")
        elif twice:
            yield fail(f"{turn}: its answer shows {twice}", ends(turn))
        else:
            yield passed(because=f"{turn}: its answer shows each text once")


def _told(turn: Turn) -> bool:
    """Whether the turn has a broken reply, and its user reads between the two texts that it begins again.

    Of a program its stderr counts too, wherever it stands.
    """
    texts = [call.ended.text_delivered for call in turn.main_calls if call.ended and call.ended.text_delivered]
    if turn.end is None or not texts or all(call.ok for call in turn.main_calls):
        return False
    if turn.end.exit_code is not None and _begins_again(turn.end.stderr):
        return True
    parts = re.split("|".join(re.escape(text[:LEAST_CHARS]) for text in texts), turn.end.answer)
    return any(map(_begins_again, parts[1:-1]))


def _begins_again(words: str) -> bool:
    return _BEGINS_AGAIN.search(uncoloured(words)) is not None


def _twice(turn: Turn, shown: str, *, may_repeat: bool) -> str:
    """What the answer shows twice, in words; else empty. With `may_repeat` it may show the whole answer again."""
    nonce = plain(turn.stimulus.nonce) if turn.stimulus is not None else ""
    replies = {plain(call.ended.text_delivered) for call in turn.main_calls if call.ended and call.ok}
    if (
        not may_repeat
        and len(nonce) >= LEAST_CHARS
        and shown.count(nonce) > max(1, sum(nonce in reply for reply in replies))
    ):
        return f"the same reply {shown.count(nonce)} times"
    whole = "".join([plain(call.ended.text_delivered) for call in turn.main_calls if call.ended and call.ok])
    broken = [plain(call.ended.text_delivered) for call in turn.main_calls if call.ended is not None and not call.ok]
    if any(_more_often(text, shown, whole) for text in broken):
        return "the text of a broken reply, and then the same text again"
    if may_repeat:
        return ""
    led = [plain(call.ended.text_delivered) for call in turn.main_calls if call.ended and call.ended.tool_calls]
    if any(len(text) >= LEAST_CHARS and shown.count(text) > max(1, whole.count(text)) for text in led):
        return "what the model said before a tool call twice"
    return "a part of a long reply twice" if any(_drawn_anew(reply, shown, whole) for reply in replies) else ""


def _drawn_anew(reply: str, shown: str, whole: str) -> bool:
    """Whether an answer shows some stretch of a long reply more often than the replies say it."""
    begins = range(0, len(reply) - STRETCH_CHARS + 1, STRETCH_CHARS) if len(reply) >= LONG_CHARS else ()
    stretches = (reply[begin : begin + STRETCH_CHARS] for begin in begins)
    return any(shown.count(text) > max(1, whole.count(text)) for text in stretches)


def _more_often(broken: str, shown: str, whole: str) -> bool:
    """Whether an answer shows a broken reply, or the first half of it, more often than the whole replies say it.

    A connection that is reset loses the last bytes that the agent has not read.
    """
    half = broken[: len(broken) // 2]
    texts = [text for text in (broken, half) if len(text) >= LEAST_CHARS]
    return any(shown.count(text) > max(1, whole.count(text)) for text in texts)
