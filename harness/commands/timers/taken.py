"""What is measured of a probe: every attempt, the waits between attempts, and the end."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from wedgehog.harness.agents.spec_keys import Timeout
from wedgehog.harness.commands.timers.probe import Probe
from wedgehog.harness.record.events.fault import FaultFired
from wedgehog.harness.record.history import History
from wedgehog.harness.record.turn_outcome import OutcomeKind, outcome_of
from wedgehog.harness.record.views import Call

LATE_S = 0.5
"""A hang-up later than this after the end does not belong to it."""
CUT_SHARE = 0.8
"""The last attempt was cut short if it lasted less than this share of the others."""
GROWS = 1.4
"""Waits grow if the last one is more than this factor of the first one."""
JITTER_SHARE, JITTER_S = 0.3, 0.15
"""The accepted difference between the waits of two rounds."""
SAME_SHARE, SAME_S = 0.1, 0.4
"""The accepted difference between two times of one timer."""
NOISE_S = 1.0
"""The accepted difference of two ends of one timer on a busy machine."""
START_S = 3.0
"""The same where no attempt was seen, so that the times include a start of the agent."""


@dataclass(frozen=True, slots=True)
class TimedAttempt:
    """One request or one connect; times of the run's clock."""

    began_s: float
    ended_s: float | None
    """None: the agent did not end it."""

    @property
    def lasted_s(self) -> float | None:
        """How long the agent kept it open."""
        return None if self.ended_s is None else max(0.0, self.ended_s - self.began_s)


@dataclass(frozen=True, slots=True)
class Taken:
    """The measurement of a probe."""

    probe: Probe
    attempts: tuple[TimedAttempt, ...] = ()
    total_s: float | None = None
    """From the first attempt to the end; None: no end within the look-out time."""
    outcome: OutcomeKind = "silent"
    said: str = ""
    """All output of the agent."""
    about: bool = False
    """No attempts were seen, or only their starts; without any, times count from the message."""
    skipped: str = ""
    """Why there is no measurement."""
    outlived: bool = False
    """An attempt was still open when the turn was over."""
    slack_s: float = LATE_S
    """The accepted delay of a hang-up; more on a busy machine."""

    @property
    def lasted_s(self) -> tuple[float, ...]:
        """The duration of each attempt that the agent ended."""
        return tuple(attempt.lasted_s for attempt in self.attempts if attempt.lasted_s is not None)

    @property
    def first_s(self) -> float | None:
        """How long the agent kept its first attempt open."""
        return self.attempts[0].lasted_s if self.attempts else self.total_s

    @property
    def waits_s(self) -> tuple[float, ...]:
        """From the end of each attempt to the start of the next one; 0 if they overlap."""
        pairs = zip(self.attempts, self.attempts[1:], strict=False)
        return tuple(max(0.0, after.began_s - before.ended_s) for before, after in pairs if before.ended_s is not None)

    @property
    def apart_s(self) -> tuple[float, ...]:
        """From the start of each attempt to the start of the next one."""
        pairs = zip(self.attempts, self.attempts[1:], strict=False)
        return tuple(after.began_s - before.began_s for before, after in pairs)

    @property
    def round_size(self) -> int | None:
        """The attempts per round if retries are nested: the waits grow within a round, then start again."""
        count, waits = len(self.attempts), self.waits_s
        for size in range(3, count // 2 + 1):
            inner = [waits[first : first + size - 1] for first in range(0, count, size)]
            grows = len(waits) == count - 1 and waits[size - 2] > GROWS * waits[0]
            if count % size == 0 and grows and all(_alike(inner[0], other) for other in inner):
                return size
        return None

    @property
    def repeats_only(self) -> bool:
        """Whether only the waits count: each attempt ended at once, or the agent ended none of several."""
        return self.probe.repeats or (not self.lasted_s and len(self.attempts) > 1)

    @property
    def overlaps(self) -> bool:
        """Whether an attempt began while the one before it was still open."""
        pairs = zip(self.attempts, self.attempts[1:], strict=False) if not self.about else ()
        return any(before.ended_s is None or before.ended_s > after.began_s + self.slack_s for before, after in pairs)

    @property
    def last_cut(self) -> bool:
        """Whether an outer timer ended the last of several attempts early; unknown (False) if attempts overlap."""
        *earlier, last = self.lasted_s or (0.0,)
        open_beside = self.overlaps or self.outlived or len(self.lasted_s) < len(self.attempts)
        return bool(earlier) and not open_beside and self.total_s is not None and last < CUT_SHARE * median(earlier)


def _alike(waits: Sequence[float], others: Sequence[float]) -> bool:
    return all(abs(a - b) <= JITTER_S + JITTER_SHARE * max(a, b) for a, b in zip(waits, others, strict=True))


def same(one_s: float, other_s: float) -> bool:
    """Return whether two times can belong to one timer."""
    return abs(one_s - other_s) <= max(SAME_S, SAME_SHARE * max(one_s, other_s))


def taken(probe: Probe, history: History) -> Taken:
    """Measure a probe's run from its history."""
    if not history.turns:
        return Taken(probe, skipped="the run was interrupted")
    turn = history.turns[0]
    fired = [it for it in history.of(FaultFired) if it.turn == 1]
    if probe.fault and not fired:
        return Taken(probe, skipped="the agent did not reach the fault")
    over_s = turn.end.at_s if turn.end and not (turn.deadline or turn.start_missed) else None
    stopped = turn.deadline or turn.start_missed or history.events[-1]
    slack_s = LATE_S + history.lag_s
    latest_s = stopped.at_s if over_s is None else over_s + slack_s
    # What arrives after the end of the turn was let through by our healing: the agent had given it up.
    made = [call for call in turn.main_calls if turn.end is None or call.arrived.id < turn.end.id]
    attempts = tuple(TimedAttempt(call.at_s, _given_up_s(call, latest_s)) for call in made)
    stuck = [TimedAttempt(it.at_s, None) for it in fired if it.call is None and probe.stops_requests]
    if stuck:  # their durations are unknown, so only starts are compared
        stuck += [TimedAttempt(attempt.began_s, None) for attempt in attempts]
        attempts = tuple(sorted(stuck, key=lambda attempt: attempt.began_s))
    begin_s = attempts[0].began_s if stuck else turn.start_s
    said = "\n".join((turn.end.answer, turn.end.error, turn.end.stdout, turn.end.stderr)) if turn.end else ""
    if not probe.fault and any(call.whole for call in turn.main_calls):
        return Taken(probe, skipped="it does not stream: a reply comes in one piece, and cannot be endless")
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


def _given_up_s(call: Call, latest_s: float) -> float | None:
    """Return when the agent ended the attempt; a hang-up because the harness stopped the agent does not count."""
    if call.refused is not None:
        return call.refused.at_s
    if call.hung_up is not None:
        return call.hung_up.at_s if call.hung_up.at_s <= latest_s else None
    return call.ended.at_s if call.ended is not None and call.ended.how == "complete" else None


@dataclass(frozen=True, slots=True)
class Turned:
    """A knob that was set to `s` seconds, and the new measurements of the same probes."""

    timer: Timeout
    s: float
    takens: tuple[Taken, ...]
    by_chance: frozenset[str] = frozenset()
    """Probes with another measurement that were played again, with and without it, and were the same then."""

    def moves(self, before: Sequence[Taken]) -> list[str]:
        """Return the names of the probes with another measurement."""
        moved = [was.probe.name for was, now in self._pairs(before) if self._moved(was, now)]
        return [name for name in moved if name not in self.by_chance]

    def looked(self, before: Sequence[Taken]) -> list[str]:
        """Return the names of the probes that can be compared."""
        return [was.probe.name for was, _ in self._pairs(before)]

    def unclear(self, before: Sequence[Taken]) -> list[str]:
        """Return the names of the probes that were measured before and cannot be compared."""
        looked = self.looked(before)
        return [was.probe.name for was in before if not was.skipped and was.probe.name not in looked]

    def _pairs(self, before: Sequence[Taken]) -> Iterator[tuple[Taken, Taken]]:
        after = {now.probe.name: now for now in self.takens if not now.skipped}
        both = ((was, after[was.probe.name]) for was in before if not was.skipped and was.probe.name in after)
        return ((was, now) for was, now in both if not self._may_be_its_start(was, now))

    def _may_be_its_start(self, was: Taken, now: Taken) -> bool:
        differs = not (was.attempts and now.attempts) and self._differ(was.total_s, now.total_s, NOISE_S)
        return differs and not self._differ(was.total_s, now.total_s, START_S)

    def _moved(self, was: Taken, now: Taken) -> bool:
        longest_s, waited_s = JITTER_SHARE * max(was.waits_s, default=0.0), JITTER_SHARE * sum(was.waits_s)
        apart = zip(was.apart_s, now.apart_s, strict=False)
        lasted = zip(was.lasted_s, now.lasted_s, strict=False)
        return (
            self._differ(was.total_s, now.total_s, max(NOISE_S, waited_s))  # the time to end a process varies
            or self._differ(was.first_s, now.first_s, 0.0 if was.attempts else NOISE_S)
            or any(self._differ(a_s, b_s, waited_s) for a_s, b_s in lasted)
            or any(self._differ(a_s, b_s, longest_s) for a_s, b_s in apart)
            or _other_tries(was, now)
            or self._named(was) != self._named(now)
        )

    def _differ(self, was_s: float | None, now_s: float | None, jitter_s: float = 0.0) -> bool:
        if was_s is None or now_s is None:
            return was_s is not now_s
        # An end moves by less than its timer if another timer fires first.
        noise_s = min(abs(self.s - self.timer.s) / 2, max(NOISE_S, SAME_SHARE * max(was_s, now_s)))
        return abs(was_s - now_s) > max(noise_s, jitter_s)

    def _named(self, it: Taken) -> bool:
        return bool(self.timer.says and it.total_s is not None and re.search(self.timer.says, it.said))


def _other_tries(was: Taken, now: Taken) -> bool:
    """Whether the number of attempts changed in another total time; in the same time a difference is chance."""
    if was.total_s is None or now.total_s is None or same(was.total_s, now.total_s):
        return False
    return len(was.attempts) != len(now.attempts)
