"""Where nothing replaces what was said, an answer is said once."""

from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends, undisturbed
from wedgehog.harness.record.error_words import plain
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Turn


@invariant("answered_once")
def answered_once(history: History) -> Iterator[Verdict]:
    """Where each message adds to what was said (a chat, ACP), the whole answer of a turn is not sent twice.

    Its user reads it twice, and a bot that reads it acts twice. Usually the pieces of a stream were sent, and then the
    whole text; or two parts of a program send it. Judged on the whole text of the model's last reply, in answered
    turns in which nothing failed: after a failure an agent may send a message again, because it cannot know
    whether the first one has arrived. A message of a chat that was edited counts as it is in the end, and one that was
    deleted does not count. `output_once` also judges what is printed, where a final text may repeat a log.

    Fix: Send an answer from one place. Where its pieces were sent, send only what is missing at the end, or edit
    the message.
    """
    for turn in history.turns:
        if turn.end is None or not turn.end.appends or outcome_of(turn, history).kind != "answered":
            continue
        if not undisturbed(history, turn, turn.end.id):
            continue
        shown = _times_shown(turn)
        if shown > 1:
            yield fail(f"{turn}: its user got the whole answer {shown} times, though nothing failed", ends(turn))
        elif shown:
            yield passed(because=f"{turn}: its user got the answer once")


def _times_shown(turn: Turn) -> int:
    """How often the answer has the whole text of the reply that holds the nonce."""
    nonce = plain(turn.stimulus.nonce) if turn.stimulus is not None else ""
    texts = [plain(call.ended.text_delivered) for call in turn.main_calls if call.final and call.ended is not None]
    given = [text for text in texts if nonce and nonce in text]
    return plain(turn.end.answer).count(given[0]) if turn.end is not None and len(given) == 1 else 0
