"""Tasks that are the same in every process, and what a task waits for."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Generator, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from wedgehog.harness.sim.programs import BEGUN_ON, PROGRAM, Program

MOST_CALLERS = 2
"""How many callers are named, the outermost last."""


class SimTask(asyncio.Task[Any]):
    """A task whose hash is its serial number, so that sets of tasks have one order in every process."""

    def __init__(self, coro: Any, *, serial: int, **options: Any) -> None:
        self.serial, self.program, self.begun_on = serial, PROGRAM.get(), BEGUN_ON.get()
        super().__init__(coro, **options)

    def set_name(self, name: object) -> None:
        """Keep the number for None, which Python 3.13 sets for a task without a name."""
        if name is not None:
            super().set_name(name)

    def __hash__(self) -> int:
        return self.serial


Coro = Coroutine[Any, Any, Any] | Generator[Any, None, Any]


def numbered_tasks() -> Callable[..., SimTask]:
    """A task factory; tasks without a name are called by their number."""
    serials = itertools.count(1)

    def factory(loop: asyncio.AbstractEventLoop, coro: Coro, **options: Any) -> SimTask:
        serial = next(serials)
        if options.get("name") is None:
            options["name"] = f"task {serial}"
        return SimTask(coro, loop=loop, serial=serial, **options)

    return factory


def in_order(loop: asyncio.AbstractEventLoop) -> list[asyncio.Task[Any]]:
    """The unfinished tasks of a loop, oldest first."""
    return sorted(asyncio.all_tasks(loop), key=lambda task: getattr(task, "serial", 0))


def tasks_of(program: Program) -> list[asyncio.Task[Any]]:
    """The unfinished tasks that a program of the running loop began, oldest first."""
    return [task for task in in_order(asyncio.get_running_loop()) if getattr(task, "program", None) is program]


def cancel_all(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel every task, oldest first, and let it end."""
    if tasks := in_order(loop):
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


def waits_for(task: asyncio.Task[Any]) -> str:
    """`task 3 (agent): read at streams.py:687, called from ask at agent.py:12`."""
    places = list(_places(task.get_coro()))[::-1]
    told = ", called from ".join([*places[:1], *places[1:][-MOST_CALLERS:]]) or "it has not started"
    return f"{task.get_name()}: {told}"


def _places(coro: Any) -> Iterator[str]:
    """Where each coroutine in a chain of awaits stands, outermost first."""
    while coro is not None:
        frame: FrameType | None = getattr(coro, "cr_frame", None) or getattr(coro, "gi_frame", None)
        code: CodeType | None = getattr(coro, "cr_code", None) or getattr(coro, "gi_code", None)
        if frame is not None and code is not None:
            yield f"{code.co_qualname} at {Path(code.co_filename).name}:{frame.f_lineno}"
        coro = getattr(coro, "cr_await", None) or getattr(coro, "gi_yieldfrom", None)
