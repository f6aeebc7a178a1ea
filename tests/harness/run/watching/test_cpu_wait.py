"""What a run waits for processors: of the agent and of the network, in the run's own time."""

from typing import Any

import pytest

from wedgehog.harness.record.events.run import CpuWait
from wedgehog.harness.run.watching.cpu_wait import LONGEST_PAUSE_S, CpuWatch, busy, lacked_processors
from wedgehog.harness.testing import HistoryBuilder


class FakeQueue:
    """Looks find what they are told to."""

    def __init__(self, counts: bool = True) -> None:
        self.counts = counts
        self.found: dict[str, list[float]] = {}
        self.pressure: float | None = 1.0
        self.looks = 0
        self.own_s = 0.0

    def look(self) -> dict[str, list[float]]:
        self.looks += 1
        return self.found

    def own_wait_s(self) -> float:
        return self.own_s

    def pressure_s(self) -> float | None:
        return self.pressure


def watch(queue: FakeQueue, **more: Any) -> CpuWatch:
    return CpuWatch("c", queue, **more)  # type: ignore[arg-type]


def test_waits_belong_to_the_run_whose_mark_the_process_carries(manual_clock: Any):
    """The Toxiproxy server is every run's."""
    queue = FakeQueue()
    cpu = watch(queue)
    with cpu.meter("c/1", manual_clock) as meter:
        manual_clock.s = 10.0
        queue.found = {"c/1/agent": [0.5], "c/1/agent/tools": [0.25], "c/10/agent": [4.0], "c/toxiproxy": [0.125]}
        cpu.look()
        assert meter is not None
        (seen,) = meter.seen(1).waits
    assert seen == CpuWait(0.0, 10.0, 0.75, 0.125)


def test_the_waits_of_the_harness_count_for_bounds_but_not_for_a_busy_run(manual_clock: Any):
    """They add up over all runs, so a watch is patient because of them, and no run is called starved."""
    queue = FakeQueue()
    cpu = watch(queue)
    with cpu.meter("c/1", manual_clock) as meter:
        manual_clock.s, queue.own_s, queue.found = 1.0, 0.5, {"c/1/agent": [0.25]}
        cpu.look()
        assert meter is not None and (meter.waited_s(0.0), meter.waited_s(0.0, with_harness=True)) == (0.25, 0.75)
        (seen,) = meter.seen(1).waits
    assert (seen.total_s, seen.of_all_s) == (0.25, 0.75)
    assert CpuWait(0.0, 1.0, 0.5, 0.25, harness_s=0.5).of_all_s == 1.0


def test_an_event_tells_what_is_new_since_the_last_one(manual_clock: Any):
    """Stretches without a wait are left out, short neighbours are one."""
    queue = FakeQueue()
    cpu = watch(queue)
    with cpu.meter("c/1", manual_clock) as meter:
        assert meter is not None
        for wait_s in (0.02, 0.03, 0.0, 0.04):
            manual_clock.s += 0.05
            queue.found = {"c/1/agent": [wait_s]}
            cpu.look()
        queue.pressure = 3.5
        event = meter.seen(1)
        assert [(it.since_s, it.until_s, it.agent_s) for it in event.waits] == [(0.0, 0.1, 0.05), (0.15, 0.2, 0.04)]
        assert event.pressure_s == 2.5
        assert meter.waited_s(0.0) == pytest.approx(0.09) and meter.waited_s(0.12) == pytest.approx(0.04)
        manual_clock.s += 0.05
        cpu.look()
        assert [it.since_s for it in meter.seen(0).waits] == [0.2]


def test_a_turn_may_ask_often_how_long_it_waited_so_far(manual_clock: Any, monkeypatch: pytest.MonkeyPatch):
    """The answer is the sum of all waits since then, but they are not added up each time."""
    queue, own = FakeQueue(), CpuWait.of_all_s.fget
    cpu, asked = watch(queue), []
    assert own is not None
    with cpu.meter("c/1", manual_clock) as meter:
        assert meter is not None
        for number in range(3000):
            manual_clock.s += 0.25
            queue.found = {"c/1/agent": [0.125 * (number % 2)]}
            cpu.look()
        monkeypatch.setattr(CpuWait, "of_all_s", property(lambda wait: asked.append(wait) or own(wait)))
        since_s = [0.0, 0.25, 100.1, 749.6, 749.9, 800.0]
        waited_s = [meter.waited_s(it, with_harness=True) for it in since_s]
        assert len(asked) < 50
        waits = meter.seen(1).waits
    assert waited_s == [sum(wait.of_all_s for wait in waits if wait.until_s > since) for since in since_s]


def test_what_the_network_waited_before_the_run_is_not_the_runs(manual_clock: Any):
    """The first look finds all since the server's start."""
    queue = FakeQueue()
    cpu = watch(queue)
    with cpu.meter("c/1", manual_clock), cpu.meter("c/2", manual_clock):
        assert queue.looks == 1


def test_a_system_that_does_not_count_has_no_meter(manual_clock: Any):
    """A run then holds no such event."""
    with watch(FakeQueue(counts=False)).meter("c/1", manual_clock) as meter:
        assert meter is None


@pytest.mark.parametrize(("cost_s", "pause_s"), [(0.0001, 0.05), (0.002, 0.2), (0.5, LONGEST_PAUSE_S)])
async def test_looking_costs_a_hundredth_of_a_processor_at_most(cost_s: float, pause_s: float, manual_clock: Any):
    """Where there is much to look at, looks come less often."""
    queue, spent, pauses = FakeQueue(), [0.0], []

    def cost() -> float:
        spent[0] += cost_s
        return spent[0]

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await manual_clock.sleep(seconds)

    cpu = watch(queue, cost=cost, pause=pause)
    with cpu.meter("c/1", manual_clock):
        async with cpu:
            await manual_clock.advance(0)
    assert pauses[0] == pytest.approx(pause_s)


@pytest.mark.parametrize(
    ("waited_s", "says"), [(0.4, ""), (3.0, "of 10.0 s it waited 3.0 s for a processor"), (2.0, "")]
)
def test_a_run_that_waited_a_quarter_of_its_time_did_not_have_the_processors_it_needs(waited_s: float, says: str):
    """And half a second at least."""
    tell = HistoryBuilder()
    tell.message()
    tell.reply(tell.ask(1), f"Done {tell.nonce}", took_s=10)
    tell.waited(waited_s, for_s=5)
    history = tell.end().seal()
    assert (busy(history), lacked_processors(history)) == (says, bool(says))


def test_the_share_of_the_last_two_seconds_that_runs_waited(manual_clock: Any):
    """Earlier looks no longer count, and what belongs to no run does not either."""
    queue = FakeQueue()
    cpu = watch(queue, now=manual_clock.now)
    assert cpu.share() == 0.0
    manual_clock.s = 60.0
    with cpu.meter("c/1", manual_clock):
        for found, share in (({"c/1/agent": [0.5]}, 0.5), ({}, 0.25), ({}, 0.0), ({"c/1": [3.0], "c/2": [3.0]}, 1.0)):
            manual_clock.s, queue.found = manual_clock.s + 1.0, found
            cpu.look()
            assert cpu.share() == share
    queue.own_s = 0.5
    with cpu.meter("c/2", manual_clock):
        manual_clock.s += 2.0
        queue.found = {}
        cpu.look()
        assert cpu.share() == 0.25
