"""How long a run waits for processors: its agent, the Toxiproxy server and the harness; how late the harness wakes up.

A delay of a busy machine is not the agent's fault. The waits of the harness add up over all that it does, for other
runs too. So they only excuse a time bound that was exceeded, and never a timer of the agent.
"""

import asyncio
import contextlib
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import astuple

from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.run import CpuWait, CpuWaitSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.run.watching.meanwhile import Meanwhile
from wedgehog.harness.sandbox.cleanup import lies_below
from wedgehog.harness.sandbox.run_queue import RunQueue, held_up_s

LOOK_EVERY_S = 0.05
COST_SHARE = 0.01
"""Looking takes at most this share of a processor: with many threads the looks come less often."""
LONGEST_PAUSE_S = 1.0
LEAST_S = 0.001
"""A shorter wait in one look is not recorded."""
BUSY_SHARE, BUSY_S = 0.25, 0.5
"""A run that waited for this share of its time, and for this long, lacks processors."""
SHARE_OF_S = 2.0
"""The share of the time that runs wait is of these last seconds."""
KEPT_TOGETHER_S = 0.2
"""Looks are merged into one wait up to this length."""


def busy(history: History) -> str:
    """A sentence if the agent and its network lacked processors, else empty."""
    took_s, waited_s = _in_turns(history, lambda wait: wait.total_s)
    return f"of {took_s:.1f} s it waited {waited_s:.1f} s for a processor" if _is_much(took_s, waited_s) else ""


def lacked_processors(history: History) -> bool:
    """Whether the agent, its network or the harness, which answers it, lacked processors."""
    return _is_much(*_in_turns(history, lambda wait: wait.of_all_s))


def _in_turns(history: History, waited_of: Callable[[CpuWait], float]) -> tuple[float, float]:
    """How long the turns took, and how long of that a processor was waited for, in s."""
    spans = [(turn.stimulus.at_s, turn.end.at_s) for turn in history.turns if turn.stimulus and turn.end]
    waited_s = sum(min(end - begin, waited_of(history.cpu_wait(begin, end))) for begin, end in spans)
    return sum(end - begin for begin, end in spans), waited_s


def _is_much(took_s: float, waited_s: float) -> bool:
    return waited_s >= max(BUSY_S, BUSY_SHARE * took_s)


BEAT_S = 0.05


class LagMonitor(Meanwhile):
    """Measures how late our own event loop wakes up while this is open."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.worst_s = 0.0

    async def _work(self) -> None:
        while True:
            due = self._clock.now() + BEAT_S
            await self._clock.sleep(BEAT_S)
            self.worst_s = max(self.worst_s, self._clock.now() - due)


class CpuMeter:
    """The waits of one run, by its own clock."""

    def __init__(self, mark: str, network: str, clock: Clock, queue: RunQueue) -> None:
        """`mark` is the run's, `network` the mark of the network's server."""
        self._mark, self._network, self._clock, self._queue = mark, network, clock, queue
        self._looked_s, self._pressure_s = clock.now(), queue.pressure_s()
        self._waits: list[CpuWait] = []
        self._before: list[tuple[float, float]] = []
        """For each wait the sums of all before it: without and with the harness."""
        self._told = 0

    def add(self, found: Mapping[str, Sequence[float]], own_s: float) -> None:
        """Keep the waits that one look has found, by mark, and that of the harness."""
        since_s, self._looked_s = self._looked_s, self._clock.now()

        def below(mark: str) -> float:
            waits = [wait for its, waits in found.items() if lies_below(its, mark) for wait in waits]
            return held_up_s(waits, self._looked_s - since_s)

        wait = CpuWait(since_s, self._looked_s, below(self._mark), below(self._network), own_s)
        if wait.of_all_s < LEAST_S:
            return
        last = self._waits[-1] if len(self._waits) > self._told else None
        if last is not None and last.until_s == since_s and wait.until_s - last.since_s <= KEPT_TOGETHER_S:
            self._waits[-1] = last + wait
        else:
            self._before.append(self._sums())
            self._waits.append(wait)

    def waited_s(self, since_s: float, *, with_harness: bool = False) -> float:
        """How long the run has waited since then, with the network and perhaps the harness.

        A turn asks twenty times in a second, and a busy machine has thousands of waits in a long one.
        """
        first = bisect_right(self._waits, since_s, key=lambda wait: wait.until_s)
        if first == len(self._waits):
            return 0.0
        return self._sums()[with_harness] - self._before[first][with_harness]

    def _sums(self) -> tuple[float, float]:
        if not self._waits:
            return 0.0, 0.0
        (total_s, of_all_s), last = self._before[-1], self._waits[-1]
        return total_s + last.total_s, of_all_s + last.of_all_s

    def seen(self, turn: int) -> CpuWaitSeen:
        """The waits since the last call, as an event."""
        new, self._told = self._waits[self._told :], len(self._waits)
        before_s, self._pressure_s = self._pressure_s, self._queue.pressure_s()
        pressure_s = None if before_s is None or self._pressure_s is None else round(self._pressure_s - before_s, 3)
        waits = tuple(CpuWait(*(round(s, 3) for s in astuple(wait))) for wait in new)
        return CpuWaitSeen(turn=turn, waits=waits, pressure_s=pressure_s)


class CpuWatch(Meanwhile):
    """Looks at the processes of all runs of a campaign at once while this is open."""

    def __init__(
        self,
        mark: str,
        queue: RunQueue | None = None,
        cost: Callable[[], float] = time.thread_time,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`mark` is the campaign's; `cost` returns the processor time that this thread has used."""
        self._mark, self._cost, self._pause, self._now = mark, cost, pause, now
        self._queue = queue or RunQueue(mark)
        self._meters: list[CpuMeter] = []
        self._looked_s = now()
        self._last: deque[tuple[float, float]] = deque()
        """The last looks: the time since the look before, and the wait of all runs and the harness."""

    @property
    def counts(self) -> bool:
        """Whether this system counts how long threads wait."""
        return self._queue.counts

    @contextlib.contextmanager
    def meter(self, mark: str, clock: Clock) -> Iterator[CpuMeter | None]:
        """The meter of one run; None if the system does not count."""
        if not self.counts:
            yield None
            return
        if not self._meters:  # forget waits since the last look: they belong to no run
            self._queue.look()
            self._queue.own_wait_s()
            self._looked_s = self._now()
        meter = CpuMeter(mark, f"{self._mark}/toxiproxy", clock, self._queue)
        self._meters.append(meter)
        try:
            yield meter
        finally:
            self._meters.remove(meter)

    def look(self) -> float:
        """Look once; returns the processor time that it took."""
        began_s = self._cost()
        found = self._queue.look()
        own_s = self._queue.own_wait_s()
        for meter in self._meters:
            meter.add(found, own_s)
        self._remember([own_s, *(wait for waits in found.values() for wait in waits)])
        return self._cost() - began_s

    def share(self) -> float:
        """For which share of the last two seconds the runs or the harness waited for a processor; 0 to 1."""
        elapsed_s = sum(elapsed_s for elapsed_s, _ in self._last)
        return min(1.0, sum(waited_s for _, waited_s in self._last) / elapsed_s) if elapsed_s else 0.0

    def _remember(self, waits: Sequence[float]) -> None:
        before_s, self._looked_s = self._looked_s, self._now()
        elapsed_s = self._looked_s - before_s
        self._last.append((elapsed_s, held_up_s(waits, elapsed_s)))
        while sum(elapsed_s for elapsed_s, _ in self._last) - self._last[0][0] >= SHARE_OF_S:
            self._last.popleft()

    async def _work(self) -> None:
        counts = self.counts  # asked once: the answer is in two files of /proc
        while counts:
            took_s = self.look() if self._meters else 0.0
            await self._pause(min(LONGEST_PAUSE_S, max(LOOK_EVERY_S, took_s / COST_SHARE)))
