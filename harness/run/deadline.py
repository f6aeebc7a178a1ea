"""When a turn is over its time, or has too many calls: its bounds, and what a busy machine adds to them."""

from dataclasses import dataclass, field

from wedgehog.harness.record.events.call import ReplyEnded
from wedgehog.harness.record.events.turn import DeadlineHit, StartMissed
from wedgehog.harness.run.count_bounds import CountBounds, requests_of
from wedgehog.harness.run.run_parts import RunParts

LONGEST_STRETCH_S = 60.0
"""The run's waits for processors stretch a bound by at most this."""


@dataclass(frozen=True)
class Bounds:
    """How long a turn may take, in real seconds, not stretched; and how many calls it may make."""

    turn_s: float
    start_s: float
    start_up_s: float
    exit_s: float = 0.0
    """How long the agent takes to end after its answer, by the control run; `turn_deadline` judges it exactly."""
    counts: CountBounds = field(default_factory=CountBounds)


@dataclass(frozen=True)
class Deadline:
    """Looks whether a turn has reached its bounds, and records it."""

    run: RunParts
    bounds: Bounds
    tick_s: float
    """How often it is asked."""
    _kept_away_s: dict[int, float] = field(default_factory=dict)
    """When a fault kept the requests of a turn away the last time."""

    def has_too_many(self, turn: int) -> bool:
        """Whether it has more rounds or calls than its bounds allow; if so, that is recorded."""
        now, first = self.run.clock.now(), next(requests_of(self.run.history, turn), None)
        if first is None or now < self.run.injector.agent.dying_until_s:
            return False
        too_many = self.bounds.counts.exceeded(self.run.history, turn, self.run.positions.rounds(turn))
        if too_many:
            self.run.history.add(DeadlineHit(turn=turn, bound_s=now - first.at_s, too_many=too_many))
        return bool(too_many)

    def is_over(self, turn: int, given_s: float, *, frozen_s: float) -> bool:
        """Whether the turn is over its time, apart from the `frozen_s` seconds in which its processes were stopped."""
        now, slack = self.run.clock.now(), 1.0 + self.run.lag.worst_s + frozen_s
        if now < self.run.injector.agent.dying_until_s:
            return False
        first = next((event.at_s for event in requests_of(self.run.history, turn)), None)
        # Before the first request the agent waits for no reply of the harness.
        waited_s = self.run.waited_s(given_s) if first is None else self.run.waited_s(first, with_harness=True)
        slack += min(waited_s, LONGEST_STRETCH_S)
        excess_s = waited_s if waited_s > LONGEST_STRETCH_S else 0.0
        if first is None and self.run.injector.keeps_requests_away:
            self._kept_away_s[turn] = now
        elif first is None:
            missed = now - max(given_s, self._kept_away_s.get(turn, 0.0)) > self.bounds.start_s + slack
            if missed:
                self.run.history.add(StartMissed(turn=turn, bound_s=self.bounds.start_s, cpu_wait_s=excess_s))
            return missed
        start = first if first is not None else given_s + self.bounds.start_up_s
        late_s = now - start - (self.bounds.turn_s + slack + self.tick_s)
        if late_s <= 0 or (late_s <= self.bounds.exit_s and self._answered(turn)):
            return False
        self.run.history.add(DeadlineHit(turn=turn, bound_s=self.bounds.turn_s, cpu_wait_s=excess_s))
        return True

    def _answered(self, turn: int) -> bool:
        """Whether its last call brought the final reply, so that only the agent's end is missing."""
        mine = {event.call for event in requests_of(self.run.history, turn) if not event.background}
        last = next(
            (event for event in reversed(self.run.history.events) if getattr(event, "call", None) in mine), None
        )
        return isinstance(last, ReplyEnded) and (last.how, last.stop) == ("complete", "end")
