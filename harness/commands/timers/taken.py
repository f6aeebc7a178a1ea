"""What a run showed of an agent's timers: each attempt, the waits between them, and the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from wedgehog.harness.commands.timers.probe import Probe
from wedgehog.harness.record.event import FaultFired
from wedgehog.harness.record.history import Call, History
from wedgehog.harness.record.turn_outcome import OutcomeKind, outcome_of

LATE_S = 0.5
"""A hang-up so long after the end is none of the end's."""
CUT_SHARE = 0.8
"""The last attempt was cut short where it lasted less than this part of the others."""
GROWS = 1.4
"""Waits back off where the last one is so many times the first one."""
JITTER_SHARE, JITTER_S = 0.3, 0.15
"""By as much may the waits of two rounds differ."""
SAME_SHARE, SAME_S = 0.1, 0.4
"""Two times are one timer's where they differ by no more."""


@dataclass(frozen=True, slots=True)
class TimedAttempt:
    """One request, or one call for a connection; times of the run's clock."""

    began_s: float
    ended_s: float | None
    """None: the agent never gave it up."""

    @property
    def lasted_s(self) -> float | None:
        """How long the agent held on to it."""
        return None if self.ended_s is None else max(0.0, self.ended_s - self.began_s)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a probe came to."""

    probe: Probe
    attempts: tuple[TimedAttempt, ...] = ()
    total_s: float | None = None
    """From the first attempt to the end; None: no end within the look-out time."""
    outcome: OutcomeKind = "silent"
    said: str = ""
    """All that the agent said."""
    about: bool = False
    """Its attempts could not be seen, or only where they began; without any the time counts from when one was due."""
    skipped: str = ""
    """Why there is nothing to see."""
    outlived: bool = False
    """An attempt was still open when the turn was over."""
    slack_s: float = LATE_S
    """What a hang-up may seem to come late by; more where the machine was busy."""

    @property
    def lasted_s(self) -> tuple[float, ...]:
        """Of each attempt that the agent gave up."""
        return tuple(attempt.lasted_s for attempt in self.attempts if attempt.lasted_s is not None)

    @property
    def first_s(self) -> float | None:
        """How long the agent held on to its first attempt."""
        return self.attempts[0].lasted_s if self.attempts else self.total_s

    @property
    def waits_s(self) -> tuple[float, ...]:
        """From the end of each attempt to the beginning of the next one, where they do not overlap."""
        pairs = zip(self.attempts, self.attempts[1:], strict=False)
        return tuple(max(0.0, after.began_s - before.ended_s) for before, after in pairs if before.ended_s is not None)

    @property
    def apart_s(self) -> tuple[float, ...]:
        """From the beginning of each attempt to that of the next one."""
        pairs = zip(self.attempts, self.attempts[1:], strict=False)
        return tuple(after.began_s - before.began_s for before, after in pairs)

    @property
    def round_size(self) -> int | None:
        """Where retries are retried: the attempts of one round, in which the waits grow, and then begin anew."""
        count, waits = len(self.attempts), self.waits_s
        for size in range(3, count // 2 + 1):
            inner = [waits[first : first + size - 1] for first in range(0, count, size)]
            grows = len(waits) == count - 1 and waits[size - 2] > GROWS * waits[0]
            if count % size == 0 and grows and all(_alike(inner[0], other) for other in inner):
                return size
        return None

    @property
    def repeats_only(self) -> bool:
        """Whether it is the waits that count: each attempt was over at once, or none of them was given up."""
        return self.probe.repeats or (not self.lasted_s and len(self.attempts) > 1)

    @property
    def overlaps(self) -> bool:
        """Whether an attempt began while the one before it was still open."""
        pairs = zip(self.attempts, self.attempts[1:], strict=False) if not self.about else ()
        return any(before.ended_s is None or before.ended_s > after.began_s + self.slack_s for before, after in pairs)

    @property
    def last_cut(self) -> bool:
        """Whether something from outside ended the last of several attempts early.

        Where one was left open beside another, nobody knows how long it was waited for.
        """
        *earlier, last = self.lasted_s or (0.0,)
        open_beside = self.overlaps or self.outlived or len(self.lasted_s) < len(self.attempts)
        return bool(earlier) and not open_beside and self.total_s is not None and last < CUT_SHARE * median(earlier)


def _alike(waits: Sequence[float], others: Sequence[float]) -> bool:
    return all(abs(a - b) <= JITTER_S + JITTER_SHARE * max(a, b) for a, b in zip(waits, others, strict=True))


def same(one_s: float, other_s: float) -> bool:
    """Whether two times are near enough to be one timer's."""
    return abs(one_s - other_s) <= max(SAME_S, SAME_SHARE * max(one_s, other_s))


def taken(probe: Probe, history: History) -> Taken:
    """Read a probe's run."""
    if not history.turns:
        return Taken(probe, skipped="the run broke off")
    turn = history.turns[0]
    if probe.fault is not None and not any(fired.turn == 1 for fired in history.of(FaultFired)):
        return Taken(probe, skipped="it never got so far as to be held up")
    over_s = turn.end.at_s if turn.end and not (turn.deadline or turn.start_missed) else None
    stopped = turn.deadline or turn.start_missed or history.events[-1]
    slack_s = LATE_S + history.lag_s
    latest_s = stopped.at_s if over_s is None else over_s + slack_s
    attempts = tuple(TimedAttempt(call.at_s, _given_up_s(call, latest_s)) for call in turn.main_calls)
    stuck = [TimedAttempt(fired.at_s, None) for fired in _uploads(history)]
    if stuck:  # (Nobody saw how long they lasted, so that only beginnings can be compared.)
        stuck += [TimedAttempt(attempt.began_s, None) for attempt in attempts]
        attempts = tuple(sorted(stuck, key=lambda attempt: attempt.began_s))
    begin_s = attempts[0].began_s if stuck else turn.start_s
    said = "\n".join((turn.end.answer, turn.end.error, turn.end.stdout, turn.end.stderr)) if turn.end else ""
    if probe.fault is None and any(call.whole for call in turn.main_calls):
        return Taken(probe, skipped="it does not stream: a reply comes in one piece, and cannot go on and on")
    return Taken(
        probe,
        attempts,
        None if over_s is None else max(0.0, over_s - begin_s),
        outcome_of(turn, history).kind,
        said,
        about=not attempts or bool(stuck),
        outlived=over_s is not None and not stuck and any(attempt.ended_s is None for attempt in attempts),
        slack_s=slack_s,
    )


def _uploads(history: History) -> list[FaultFired]:
    """Requests that were stopped on their way up: nobody saw them arrive, and each stop is on record."""
    return [it for it in history.of(FaultFired) if it.turn == 1 and it.name == "stall" and it.call is None]


def _given_up_s(call: Call, latest_s: float) -> float | None:
    """When the attempt was over for the agent; a hang-up that came of our stopping it is none."""
    if call.refused is not None:
        return call.refused.at_s
    if call.hung_up is not None:
        return call.hung_up.at_s if call.hung_up.at_s <= latest_s else None
    return call.ended.at_s if call.ended is not None and call.ended.how == "complete" else None
