"""A timer that was turned, and which of the probes it moved."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wedgehog.harness.agents.spec import Timeout
from wedgehog.harness.commands.timers.taken import JITTER_SHARE, SAME_SHARE, Taken, same

NOISE_S = 1.0
"""By as much may two ends of one timer differ on a busy machine."""
START_S = 3.0
"""And by as much where no attempt was seen, so that two starts of the agent are compared too."""


@dataclass(frozen=True, slots=True)
class Turned:
    """A knob that was turned to `s` seconds, and what the same probes came to then."""

    timer: Timeout
    s: float
    takens: tuple[Taken, ...]

    def moves(self, before: Sequence[Taken]) -> list[str]:
        """The probes that came to something else."""
        return [was.probe.name for was, now in self._pairs(before) if self._moved(was, now)]

    def looked(self, before: Sequence[Taken]) -> list[str]:
        """The probes that were measured both times, and can be compared."""
        return [was.probe.name for was, _ in self._pairs(before)]

    def unclear(self, before: Sequence[Taken]) -> list[str]:
        """The probes that were measured, and could not be looked at again, or not closely enough."""
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
            self._differ(was.total_s, now.total_s, max(NOISE_S, waited_s))  # (How long a process takes to end varies.)
            or self._differ(was.first_s, now.first_s, 0.0 if was.attempts else NOISE_S)
            or any(self._differ(a_s, b_s, waited_s) for a_s, b_s in lasted)
            or any(self._differ(a_s, b_s, longest_s) for a_s, b_s in apart)
            or _other_tries(was, now)
            or self._named(was) != self._named(now)
        )

    def _differ(self, was_s: float | None, now_s: float | None, jitter_s: float = 0.0) -> bool:
        if was_s is None or now_s is None:
            return was_s is not now_s
        # An end moves by less than its timer was turned by, where another timer comes first then.
        noise_s = min(abs(self.s - self.timer.s) / 2, max(NOISE_S, SAME_SHARE * max(was_s, now_s)))
        return abs(was_s - now_s) > max(noise_s, jitter_s)

    def _named(self, it: Taken) -> bool:
        return bool(self.timer.says and it.total_s is not None and re.search(self.timer.says, it.said))


def _other_tries(was: Taken, now: Taken) -> bool:
    """Another number of tries in another time; in the same time it is chance whether one more fits into it."""
    if was.total_s is None or now.total_s is None or same(was.total_s, now.total_s):
        return False
    return len(was.attempts) != len(now.attempts)
