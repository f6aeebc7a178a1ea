"""A cut reply is not shown as an answer."""

import re
from collections.abc import Iterator

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends, main_calls_of
from wedgehog.harness.record.error_words import plain
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.record.shown_words import CUT_TEXT_CHARS
from wedgehog.harness.record.turn_outcome import answers, outcome_of, tells_error
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, Turn
from wedgehog.harness.scenario.trigger import CHANNEL

LEAST_CHARS = 4
"""Shorter words in Latin letters may be in an answer by chance."""


@invariant("truncation_noticed")
def truncation_noticed(history: History) -> Iterator[Verdict]:
    """Part of a reply that was cut, or stopped at max_tokens or by a filter, is not shown as the whole answer.

    A reply with holes is not shown either: if the provider's stream was faulty, or a page lost its connection, and the
    turn is answered, the answer has every word of the final reply, or its user reads an error. Judged if the
    answer of a turn without such a fault shows that this agent prints replies whole. Nor is the beginning of a reply of
    more than 2,000 letters that came whole, without a mark that there is more: a front end that cuts what is longer
    than it can show must say so, or send the rest too.

    Fix: Look how the reply ended. Without its last event, or with `max_tokens`, `length`, `content_filter`,
    `refusal` or `SAFETY` as its stop reason, it is cut: try again, continue it, or tell the user. Send what is too long
    for one message in several. A page that connects again needs what it has missed, or the whole answer.
    """

    for turn in history.turns:
        cut = [call.ended for call in main_calls_of(turn) if call.ended and not call.ok]
        outcome = outcome_of(turn, history)
        if lost := _lost_words(turn, history):
            yield fail(f"{turn}: its answer lacks words of the reply: {', '.join(lost[:5])}", ends(turn))
        elif outcome.kind == "truncated":
            yield fail(f"{turn}: {outcome.how}", (*cut, *ends(turn)))
        elif cut and outcome.kind != "unfinished":
            long = any(len(plain(it.text_delivered)) >= CUT_TEXT_CHARS for it in cut)
            shown = f"no {CUT_TEXT_CHARS} characters of it in a row are shown as the answer"
            shown = shown if long else "what came of it is not shown as the whole answer"
            came = "the turn has a whole answer" if outcome.kind == "answered" else shown
            yield passed(because=f"{turn}: a reply was cut, and {came}")


def _lost_words(turn: Turn, history: History) -> list[str]:
    """Words of a faulty turn's final reply that its answer lacks, of an agent that prints replies whole."""
    beside = {call.number for call in history.calls if call.arrived.side}
    links = {(it.turn, it.link) for it in history.of(FaultFired) if it.call not in beside}
    faulty = {number for number, link in links if link in ("llm", CHANNEL)}
    own = turn.end is not None and bool(turn.end.error) and (turn.number, "llm") not in links
    if turn.number not in faulty or own or tells_error(turn, history):
        return []
    lost = _missing(turn)
    others = [other for other in history.turns if other.number not in faulty and _final(other) is not None]
    return lost if lost and any(not _missing(other) for other in others) else []


def _missing(turn: Turn) -> list[str]:
    """Words of the final reply that are not in the answer."""
    final, end = _final(turn), turn.end
    if final is None or final.ended is None or end is None:
        return []
    shown = plain(end.answer)
    words = re.findall(r"[^\W_]+", final.ended.text_delivered)
    return [word for word in words if (len(word) >= LEAST_CHARS or not word.isascii()) and plain(word) not in shown]


def _final(turn: Turn) -> Call | None:
    """The call whose whole reply is the turn's answer."""
    in_time = (call for call in reversed(turn.main_calls) if turn.end is None or call.arrived.id < turn.end.id)
    last = next(in_time, None)
    return last if last is not None and last.final and answers(turn, turn) else None
