"""Blocking functions that make an event loop, as `asyncio.run` does, in virtual time."""

import asyncio
import contextlib
import functools
import sys
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from wedgehog.harness.sim.blocking import run_blocking
from wedgehog.harness.sim.errors import SimUnsupportedError
from wedgehog.harness.sim.own_loop import own_loops
from wedgehog.harness.sim.world import SimWorld, simulate

pytest.importorskip("greenlet")


async def called(function: Callable[..., Any]) -> Any:
    with own_loops():
        return await run_blocking(function)


def answered(function: Callable[..., Any]) -> Any:
    return simulate(lambda: called(function))


async def slept() -> str:
    await asyncio.sleep(600)
    return "slept"


def by_runner() -> str:
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(slept())


def by_new_loop() -> str:
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(slept())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


WAYS: dict[str, Callable[[], str]] = {
    "asyncio.run": lambda: asyncio.run(slept()),
    "anyio.run": functools.partial(anyio.run, slept),
    "a runner with a factory": by_runner,
    "a new loop": by_new_loop,
    "the current loop": lambda: asyncio.get_event_loop().run_until_complete(slept()),
    "the policy's loop": lambda: asyncio.get_event_loop_policy().get_event_loop().run_until_complete(slept()),
}


@pytest.mark.parametrize("way", WAYS)
def test_ten_minutes_pass_at_once_and_others_live_through_them(way: str):
    """A task beside the function counts minutes."""
    passed: list[int] = []

    async def minutes() -> None:
        for minute in range(20):
            await asyncio.sleep(60)
            passed.append(minute)

    async def main() -> list[str]:
        beside = asyncio.create_task(minutes())
        answers = [await called(WAYS[way]), await called(WAYS[way])]
        assert not beside.cancelled() and asyncio.get_running_loop().is_running()
        beside.cancel()
        return answers

    with SimWorld() as world:
        assert world.run(main) == ["slept", "slept"]
    assert len(passed) in (19, 20)


def test_a_function_has_no_running_loop_and_its_coroutine_has_one():
    seen: list[object] = []

    async def inside() -> None:
        seen.append(asyncio.get_running_loop())
        again = slept()
        with pytest.raises(RuntimeError, match="running event loop"):
            asyncio.run(again)
        again.close()

    def function() -> None:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        asyncio.run(inside())
        time.sleep(1)
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()

    answered(function)
    assert len(seen) == 1


def test_tasks_that_are_left_end_with_their_loop():
    """As `asyncio.run` ends them; those of another loop go on."""
    ended: list[str] = []

    async def background(name: str) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(name)

    async def nested() -> None:
        asyncio.create_task(background("begun by a task"))  # noqa: RUF006  the loop knows it
        await asyncio.sleep(1)

    async def begins() -> None:
        asyncio.create_task(background("begun"))  # noqa: RUF006
        await asyncio.create_task(nested())

    async def main() -> list[str]:
        other = asyncio.create_task(background("another's"))
        await called(lambda: asyncio.run(begins()))
        before, _ = list(ended), other.cancel()
        return before

    assert simulate(main) == ["begun", "begun by a task"]


def test_an_abort_cancels_the_coroutine_and_interrupts_the_function():
    """As Ctrl-C does in a process: the coroutine cleans up first."""
    seen: list[str] = []

    async def works() -> None:
        try:
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(2)
            seen.append("cleaned up")

    def function() -> None:
        try:
            asyncio.run(works())
        except KeyboardInterrupt:
            seen.append("interrupted")
            raise

    async def main() -> bool:
        call = asyncio.create_task(called(function))
        await asyncio.sleep(1)
        call.cancel()
        await asyncio.wait([call])
        return call.cancelled()

    assert simulate(main) and seen == ["cleaned up", "interrupted"]


def test_an_error_of_the_coroutine_is_the_functions():
    async def fails() -> None:
        await asyncio.sleep(1)
        raise ValueError("no")

    with pytest.raises(ValueError, match=r"^no$"):
        answered(lambda: asyncio.run(fails()))


def test_a_loop_that_talks_to_the_real_world_is_refused():
    real = asyncio.SelectorEventLoop()
    refused = pytest.raises(SimUnsupportedError, match=r"class _UnixSelectorEventLoop is not simulated.*live world")
    with contextlib.closing(real), refused:
        answered(lambda: real.run_forever())  # noqa: PLW0108  (the method is replaced in it)


def by_hand() -> str:
    import uvloop  # as late as an agent may import it

    with contextlib.closing(uvloop.new_event_loop()) as loop, contextlib.closing(slept()) as asked:
        return loop.run_until_complete(asked)


def by_its_runner() -> str:
    import uvloop

    with contextlib.closing(slept()) as asked:
        return uvloop.run(asked)


@pytest.mark.parametrize(
    ("way", "says"),
    [(by_hand, r"class uvloop\.Loop is not simulated"), (by_its_runner, r"uvloop\.run, .* is not simulated")],
    ids=["by hand", "by uvloop.run"],
)
def test_a_loop_of_uvloop_is_refused_by_its_name(way: Callable[[], str], says: str, monkeypatch: pytest.MonkeyPatch):
    """Imported before and after the function began; else it waits in real time, or its error does not help."""
    pytest.importorskip("uvloop")
    for _ in range(2):
        with pytest.raises(SimUnsupportedError, match=says + ".*live world"):
            answered(way)
        for name in [name for name in sys.modules if name.partition(".")[0] == "uvloop"]:
            monkeypatch.delitem(sys.modules, name)


def test_a_loop_without_an_end_is_refused():
    with pytest.raises(SimUnsupportedError, match="runs for ever is not simulated"):
        answered(lambda: asyncio.new_event_loop().run_forever())
