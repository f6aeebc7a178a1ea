"""More runs begin while those that are played hardly wait for a processor; never more than asked for."""

import asyncio

import pytest

from wedgehog.harness.campaign import places
from wedgehog.harness.campaign.places import SETTLES_S, Places


class Clock:
    """Moves when it is told to."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Runs:
    """Six runs that ask for a place, and end when they are told to."""

    def __init__(self, given: Places) -> None:
        self.begun: list[int] = []
        self._ends = [asyncio.Event() for _ in range(6)]
        self._tasks = [asyncio.create_task(self._run(given, number)) for number in range(6)]

    async def _run(self, given: Places, number: int) -> None:
        async with given.one():
            self.begun.append(number)
            await self._ends[number].wait()

    async def now(self) -> list[int]:
        """Those that have begun, once nothing more begins by itself."""
        for _ in range(200):
            await asyncio.sleep(0)
        return self.begun

    async def end(self, number: int) -> None:
        self._ends[number].set()
        await self._tasks[number]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a pause between two looks."""

    monkeypatch.setattr(places, "LOOK_EVERY_S", 0)


async def test_a_fixed_number_of_runs_is_played_in_the_order_in_which_they_ask():
    """`--jobs 2`: the third begins when one has ended."""
    runs = Runs(Places(2))
    assert await runs.now() == [0, 1]
    await runs.end(0)
    assert await runs.now() == [0, 1, 2]
    await runs.stop()


async def test_further_runs_begin_one_by_one_while_the_others_wait():
    """Each is observed for a moment before the next one."""
    clock = Clock()
    runs = Runs(Places(2, 4, lambda: 0.0, clock))
    assert await runs.now() == [0, 1]
    for begun in ([0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3]):
        clock.now_s += SETTLES_S
        assert await runs.now() == begun
    await runs.end(2)
    clock.now_s += SETTLES_S
    assert await runs.now() == [0, 1, 2, 3, 4]
    await runs.stop()


async def test_no_further_run_begins_where_runs_lack_a_processor():
    """The sure ones do all the same."""
    clock, waiting = Clock(), 0.5
    runs = Runs(Places(2, 4, lambda: waiting, clock))
    assert await runs.now() == [0, 1]
    clock.now_s += 60
    assert await runs.now() == [0, 1]
    await runs.end(1)
    assert await runs.now() == [0, 1, 2]
    waiting = 0.0
    clock.now_s += SETTLES_S
    assert await runs.now() == [0, 1, 2, 3]
    await runs.stop()


async def test_a_run_that_is_cancelled_leaves_its_place():
    """Also one that still asks for it."""
    given = Places(1)
    runs = Runs(given)
    assert await runs.now() == [0]
    await runs.stop()
    async with asyncio.timeout(5), given.one():
        pass
