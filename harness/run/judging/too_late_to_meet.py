"""Whether a message met the turn that it was to meet, or came when that had ended."""

from collections.abc import Iterator

from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import outcome_of
from wedgehog.harness.record.verdict import Verdict, inconclusive
from wedgehog.harness.record.views import Turn


def too_late_to_meet(history: History) -> Iterator[Verdict]:
    """A message that its agent could not work on before the turn that it was to meet had ended.

    An agent that starts for each message needs its usual time until it looks at the session. One that was there sooner
    may wait with its request, so only the time decides: that of the clock, and that without waits for a processor.
    """
    alone = [period for turn in history.turns if not _met(history, turn) and (period := _start(turn)) is not None]
    usual_s = min((until_s - since_s for since_s, until_s in alone), default=0.0)
    usual_ran_s = min((_ran_s(history, *period) for period in alone), default=0.0)
    for turn in history.turns:
        for other in _met(history, turn):
            if not turn.calls or other.end is None or turn.stimulus is None or _replaced(history, other):
                continue
            since_s, until_s = turn.stimulus.at_s, other.end.at_s
            left_s, ran_s = until_s - since_s, _ran_s(history, since_s, until_s)
            if turn.calls[0].at_s > until_s and (left_s < usual_s or ran_s < usual_ran_s):
                said = f"{turn} did not meet {other}: that ended {left_s:.1f} s after its message"
                why = f"and the agent needs {usual_s:.1f} s from a message to its request"
                waited = f", and waited {left_s - ran_s:.1f} s for a processor" if left_s >= usual_s else ""
                yield inconclusive(f"{said}, {why}{waited}", [turn.calls[0].arrived]).for_reason("messages")


def _replaced(history: History, turn: Turn) -> bool:
    """Whether a turn ended in an error without a fault: a newer message took its place."""
    struck = any(fired.turn == turn.number for fired in history.of(FaultFired))
    return not struck and outcome_of(turn, history).kind == "surfaced"


def _met(history: History, turn: Turn) -> tuple[Turn, ...]:
    """The turns that were open when its message was given."""
    return tuple(it for it in history.in_parallel(turn) if it.number < turn.number)


def _start(turn: Turn) -> tuple[float, float] | None:
    """The period from a message to its first request; None if a fault kept that away."""
    if not turn.calls or turn.stimulus is None or turn.kept_from_start:
        return None
    return turn.stimulus.at_s, turn.calls[0].at_s


def _ran_s(history: History, since_s: float, until_s: float) -> float:
    """The seconds of a period in which the agent did not wait for a processor."""
    return max(0.0, until_s - since_s - history.cpu_wait(since_s, until_s).agent_s)
