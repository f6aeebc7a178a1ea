"""A database that fails does not cost the conversation without a word."""

import re
from collections.abc import Iterator
from typing import Final

from wedgehog.harness.invariants.history_kept import summarized
from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends, main_calls_of, requests
from wedgehog.harness.record.error_words import matching, uncoloured
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, Turn

_TELLS: Final = re.compile(
    r"memor|histor|earlier|previous|remember|forg[eo]t|context|database|session|can(?:no|')t|could ?n[o']t|unable",
    re.IGNORECASE,
)
"""Words with which an agent may tell its user of the loss."""


@invariant("memory_loss_told")
def memory_loss_told(history: History) -> Iterator[Verdict]:
    """A turn in which a server behind `links:` failed does not lose the earlier turns without a word.

    An agent that takes a failed read of its database for an empty memory answers as if its user had said nothing
    before, and may then store the empty conversation over the old one. Judged on answered turns in which a fault struck
    such a server before the first request, if another turn of the run carries the message of an earlier one. The output
    of the turn must name an error or the memory, or its requests must carry an earlier answered turn. A background call
    in between may have made a summary. An agent that never carries earlier turns is not judged.

    Fix: Tell a failed read from an empty result: an error, a time-out or a closed connection is not "no messages". Try
    again on a new connection, or tell the user that the earlier conversation cannot be read. Store nothing then.
    """
    others = {turn.number for turn in history.turns if not _struck(history, turn) and _carries_more(turn)}
    answered: list[Turn] = []
    for turn in history.turns:
        calls = [call for call in main_calls_of(turn) if call.paid]
        is_answered = outcome_of(turn, history).kind == "answered"
        if is_answered and answered and calls and others and _struck_before(history, turn, calls[0]):
            yield from _judge(history, turn, answered, calls)
        if is_answered:
            answered.append(turn)


def _judge(history: History, turn: Turn, answered: list[Turn], calls: list[Call]) -> Iterator[Verdict]:
    seen = {number for call in calls for number in call.arrived.turns_seen}
    if turn.number not in seen or history.beside(turn):
        return
    if seen & {it.number for it in answered}:
        yield passed(because=f"{turn}: its requests carry an earlier turn although its server failed")
    elif not _tells(history, turn) and not summarized(history, answered[-1], calls[0]):
        fired = _struck(history, turn)[0]
        lost = f"request {calls[0].number} carries none of the earlier turns, and nothing in the output says so"
        yield fail(f"{turn}: after {fired.name} on {fired.link}, {lost}", (*requests(calls), *ends(turn)))


def _struck(history: History, turn: Turn) -> list[FaultFired]:
    """The faults that struck a server of the user's own in a turn."""
    return [it for it in history.of(FaultFired) if it.turn == turn.number and it.link.startswith("tcp:")]


def _struck_before(history: History, turn: Turn, call: Call) -> bool:
    return any(it.id < call.arrived.id for it in _struck(history, turn))


def _carries_more(turn: Turn) -> bool:
    """Whether a request of a turn carries the message of an earlier one."""
    return any(number < turn.number for call in main_calls_of(turn) for number in call.arrived.turns_seen)


def _tells(history: History, turn: Turn) -> bool:
    """Whether the output of a turn has a word of an error, or of its memory."""
    end = turn.end
    said = uncoloured("\n".join((end.stdout, end.stderr, end.answer, end.error))) if end is not None else ""
    return bool(matching(said, history.run.error_patterns)) or _TELLS.search(said) is not None
