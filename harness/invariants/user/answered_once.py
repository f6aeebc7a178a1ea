"""Where nothing replaces what was said, an answer is said once."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends, requests, undisturbed
from wedgehog.harness.record.error_words import plain
from wedgehog.harness.record.events.turn import DeliveredAgain
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, Turn

_THOUGHTS = re.compile(r"<(think|thinking|thought)>.*?</\1>", re.DOTALL)


@invariant("answered_once")
def answered_once(history: History) -> Iterator[Verdict]:
    """Where each message adds to what was said (a chat, ACP), the whole answer of a turn is not sent twice.

    Its user reads it twice, and a bot that reads it acts twice. Usually the pieces of a stream were sent, and then the
    whole text; or two parts of a program send it. Or two parts of it ask the model for the same message, and both
    replies are sent: the second request is the same, or has the message twice. Judged on the whole text of the model's
    last reply, in answered turns in which nothing failed: after a failure an agent may send a message again, because
    it cannot know whether the first one has arrived. A message of a chat that was edited counts as it is in the end,
    and one that was deleted does not count. `output_once` also judges what is printed, where a final text may repeat a
    log.

    Fix: Send an answer from one place. Where its pieces were sent, send only what is missing at the end, or edit
    the message. Let one part of the program take a message.
    """
    came_twice = {it.turn for it in history.of(DeliveredAgain)}
    for turn in history.turns:
        if turn.end is None or not turn.end.appends or outcome_of(turn, history).kind != "answered":
            continue
        finals = _answering(turn)
        pair = _asked_again(turn, finals) if turn.number not in came_twice else None
        if not undisturbed(history, turn, turn.end.id):
            continue
        shown = _times_shown(turn, finals) if pair is not None or len(finals) == 1 else 0
        if shown > 1 and pair is not None:
            says = (
                f"{turn}: its user got the whole answer {shown} times, and request {pair[1].number} asks for it again"
            )
            yield fail(says, (*requests(pair), *ends(turn)))
        elif shown > 1:
            yield fail(f"{turn}: its user got the whole answer {shown} times, though nothing failed", ends(turn))
        elif shown:
            yield passed(because=f"{turn}: its user got the answer once")


def _answering(turn: Turn) -> list[Call]:
    """The calls whose last words hold the nonce."""
    nonce = plain(turn.stimulus.nonce) if turn.stimulus is not None else ""
    return [call for call in turn.main_calls if call.final and nonce and nonce in _words(call)]


def _asked_again(turn: Turn, finals: Sequence[Call]) -> tuple[Call, Call] | None:
    """Two calls of which the second is for the same message again, though the first one's reply has come."""
    return next((pair for pair in pairwise(finals) if _same_message(turn, *pair)), None)


def _same_message(turn: Turn, first: Call, second: Call) -> bool:
    same = first.arrived.body_hash == second.arrived.body_hash != ""
    doubled = turn.number in second.arrived.turns_doubled and turn.number not in first.arrived.turns_doubled
    return same or doubled


def _times_shown(turn: Turn, finals: Sequence[Call]) -> int:
    """How often the answer has the whole text of one of these replies."""
    given = plain(turn.end.answer) if turn.end is not None else ""
    return sum(given.count(text) for text in {_words(call) for call in finals})


def _words(call: Call) -> str:
    """What its reply says, without thoughts in tags: one answer may have them, and another one not."""
    said = call.ended.text_delivered if call.ended is not None else ""
    return plain(_THOUGHTS.sub("", said))
