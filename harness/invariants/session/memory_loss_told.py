"""A database that fails, or a worker that dies, does not cost the conversation without a word."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from wedgehog.harness.invariants.registry import invariant
from wedgehog.harness.invariants.scope import ends, main_calls_of, requests
from wedgehog.harness.invariants.session.history_kept import summarized
from wedgehog.harness.record.error_words import uncoloured
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.events.turn import AgentKilled
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, fail, passed
from wedgehog.harness.record.views import Call, Turn
from wedgehog.harness.scenario.fault_config import AGENT

_WORD: Final = re.compile(r"(?<!\w)[^\W\d_]{3,}(?!\w)")
"""A word; no part of an id, which has digits."""


@invariant("memory_loss_told")
def memory_loss_told(history: History) -> Iterator[Verdict]:
    """If a server behind `links:`, a database or a worker fails, an answered turn is not silently forgotten.

    An agent that takes a failed read of its database for an empty memory answers as if its user had said nothing
    before; one that ignores a failed write has forgotten the turn at the next message. So has a program that runs
    another agent, and starts a new one without the conversation where that died. Judged on two answered turns in a
    row, if a fault struck one of these in one of the two: the requests of the second must carry the message of the
    first. If they do not, the output of one of the two must have a word of its own, which neither the
    model nor a turn without a failure says. A background call in between may have made a summary. Another turn of the
    run must have carried the one before it: an agent without a memory is not judged, nor one that leaves turns out
    without a fault.

    Fix: Tell a failed read from an empty result: an error, a time-out or a closed connection is not "no messages". Try
    again on a new connection, or tell the user that the earlier conversation cannot be read, or that this turn could
    not be stored. Start the agent below with its session, and tell the user if it has none.
    """
    answered = [turn for turn in history.turns if outcome_of(turn, history).kind == "answered" and _paid(turn)]
    pairs = list(pairwise(answered))
    for before, turn in pairs:
        struck = [*_struck(history, before), *_struck(history, turn)]
        if (
            struck
            and _keeps(history, [pair for pair in pairs if pair[1] is not turn], turn)
            and _carries(turn, turn)
            and not history.beside(turn)
            and not history.beside(before)
        ):
            yield from _judge(history, before, turn, struck[0])


def _keeps(history: History, pairs: list[tuple[Turn, Turn]], struck: Turn) -> bool:
    """Whether the agent sends the turn before: at least once, and each time where no fault struck either of the two.

    After the struck turn it may have lost its memory for good: then it sends no earlier turn at all.
    """
    unharmed = [pair for pair in pairs if not any(_struck(history, turn) for turn in pair)]
    before = [_carries(later, earlier) for earlier, later in unharmed if later.number < struck.number]
    after = [(earlier, later) for earlier, later in unharmed if later.number > struck.number]
    always = all(_carries(later, earlier) for earlier, later in after)
    never = not any(_seen(later) - {later.number} for _, later in after)
    return any(_carries(later, earlier) for earlier, later in pairs) and all(before) and (always or never)


def _judge(history: History, before: Turn, turn: Turn, fired: FaultFired) -> Iterator[Verdict]:
    calls = _paid(turn)
    if _carries(turn, before):
        yield passed(because=f"{turn}: its requests carry {before} although {_place(fired)} failed")
    elif not _is_told(history, before, turn) and not summarized(history, before, calls[0]):
        lost = f"request {calls[0].number} carries nothing of {before}, which was answered"
        says = f"{turn}: {lost}; {fired.name} struck {_place(fired)}, and nothing in the output says so"
        yield fail(says, (fired, *requests(calls), *ends(turn)))


def _place(fired: FaultFired) -> str:
    return "its database" if fired.of_memory else "the agent below" if fired.link == AGENT else fired.link


def _paid(turn: Turn) -> list[Call]:
    return [call for call in main_calls_of(turn) if call.paid]


def _struck(history: History, turn: Turn) -> list[FaultFired]:
    """The faults that struck its memory in a turn: a server of the user's own, its database, or its worker.

    A fault may be proved only at the turn's end.
    """
    fired = [it for it in history.of(FaultFired) if it.turn == turn.number]
    killed = any(it.turn == turn.number and it.whom == "worker" for it in history.of(AgentKilled))
    kills = [it for it in fired if killed and it.link == AGENT and not it.of_memory]
    return [it for it in fired if it.of_memory or it.link.startswith("tcp:")] + kills


def _carries(turn: Turn, other: Turn) -> bool:
    """Whether a request of a turn has the message of another one, or its own."""
    return other.number in _seen(turn)


def _seen(turn: Turn) -> set[int]:
    """The numbers of the turns whose messages its requests have."""
    return {number for call in _paid(turn) for number in call.arrived.turns_seen}


def _is_told(history: History, *turns: Turn) -> bool:
    """Whether the output of these turns has a word of its own, which may tell the user of the loss.

    That is a word that no reply of the model, no message and no output of a turn without a failure has.
    """
    usual = [turn for turn in history.turns if turn not in turns and not _struck(history, turn)]
    said = [call.ended.text_delivered for call in history.calls if call.ended is not None]
    said += [turn.stimulus.text for turn in history.turns if turn.stimulus is not None]
    return not _output_words(*turns) <= _output_words(*usual) | _words("\n".join(said))


def _output_words(*turns: Turn) -> set[str]:
    """The words that a user reads: of a service only those of its reply, since its log is for others."""
    ends_ = [turn.end for turn in turns if turn.end is not None]
    logs = [text for end in ends_ if end.status is None for text in (end.stdout, end.stderr)]
    return _words("\n".join([*logs, *(text for end in ends_ for text in (end.answer, end.error))]))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(uncoloured(text).casefold()))
