"""The event loop that a blocking function makes for itself: `asyncio.run`, `anyio.run`, `run_until_complete`.

Its coroutines run on the simulated loop, and the function waits for them. Unlike a loop of its own, that one does not
stand still between two calls.
"""

import asyncio
import contextlib
import warnings
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextvars import Context
from typing import Any, cast
from unittest import mock

from wedgehog.harness.sim.blocking import can_wait, wait_for
from wedgehog.harness.sim.loop import SimLoop
from wedgehog.harness.sim.programs import BEGUN_ON
from wedgehog.harness.sim.tasks import in_order


class OwnLoop(SimLoop):
    """It shares the clock, the network and the tasks of the simulated loop, but is closed alone."""

    __slots__ = ("_over", "_simulated")

    def __init__(self, simulated: SimLoop) -> None:
        self.__dict__ = simulated.__dict__
        self._simulated, self._over = simulated, False

    def __del__(self) -> None:
        """A loop that was not closed holds no resources."""

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:  # type: ignore[override]
        """A task of the simulated loop, which ends with this one."""
        if context is not None:
            context.run(BEGUN_ON.set, self)
        before = BEGUN_ON.set(self)
        try:
            return self._simulated.create_task(coro, name=name, context=context)
        finally:
            BEGUN_ON.reset(before)

    def create_future(self) -> "asyncio.Future[Any]":
        """A future of the simulated loop."""
        return self._simulated.create_future()

    def run_until_complete(self, future: Generator[Any, None, Any] | Awaitable[Any]) -> Any:
        """Wait for it in the blocking function."""
        done = future if asyncio.isfuture(future) else self.create_task(future)
        wait_for(_ended(done))
        return done.result()

    def run_forever(self) -> None:
        """Refused: only a call from another thread could end it."""
        raise self.refusal("an event loop that runs for ever")

    def close(self) -> None:
        """End the tasks that are left on it."""
        left = [] if self._over else [it for it in in_order(self._simulated) if getattr(it, "begun_on", None) is self]
        self._over = True
        for task in left:
            task.cancel()
        if left and can_wait():
            wait_for(_all_ended(left))

    def is_closed(self) -> bool:
        """Whether its function has closed it."""
        return self._over

    def is_running(self) -> bool:
        """Never while its function runs."""
        return False

    def set_debug(self, enabled: bool) -> None:
        """There is no debug mode."""

    async def shutdown_asyncgens(self) -> None:
        """Nothing: async generators of other code must go on."""

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  it is asyncio's
        """Nothing: there is no executor."""


async def _ended(future: "asyncio.Future[Any]") -> None:
    """Wait for its end. A cancellation, such as Ctrl-C, is passed on to the future, which decides what follows."""
    try:
        await asyncio.wait({future})
    except asyncio.CancelledError:
        future.cancel()
        await asyncio.wait({future})
        if future.cancelled():
            raise


async def _all_ended(tasks: list["asyncio.Task[Any]"]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def own_loops() -> Iterator[None]:
    """Let blocking functions make event loops. Code of the simulated loop gets asyncio's own."""
    simulated, mine = cast(SimLoop, asyncio.get_running_loop()), list[OwnLoop]()

    def new() -> OwnLoop:
        mine.append(OwnLoop(simulated))
        return mine[-1]

    def current() -> OwnLoop:
        return next((loop for loop in reversed(mine) if not loop.is_closed()), None) or new()

    def run_forever(loop: asyncio.BaseEventLoop) -> None:
        if can_wait() and not isinstance(loop, SimLoop):
            raise simulated.refusal(f"an event loop of the class {type(loop).__name__}")
        running(loop)

    def foreign_forever(loop: asyncio.AbstractEventLoop) -> None:
        raise simulated.refusal(f"an event loop of the class {_named(type(loop))}")

    def refuse(cls: type[asyncio.AbstractEventLoop]) -> None:
        stack.enter_context(mock.patch.object(cls, "run_forever", foreign_forever))

    def runner(self: Any, *, debug: bool | None = None, loop_factory: Any = None) -> None:
        started(self, debug=debug, loop_factory=new if can_wait() else loop_factory)

    def run(self: Any, coro: Any, **options: Any) -> Any:
        if can_wait() and (wants := _wants_its_own_loop(coro)):
            coro.close()
            raise simulated.refusal(f"{wants}, which accepts no other event loop than its own,")
        return ran(self, coro, **options)

    running, started, ran = asyncio.BaseEventLoop.run_forever, asyncio.Runner.__init__, asyncio.Runner.run
    policy = _policy()
    with contextlib.ExitStack() as stack:
        for name, instead in (("new_event_loop", new), ("get_event_loop", current)):
            stack.enter_context(mock.patch.object(policy, name, _in_a_function(instead, getattr(policy, name))))
        stack.enter_context(mock.patch.object(asyncio.BaseEventLoop, "run_forever", run_forever))
        stack.enter_context(mock.patch.object(asyncio.Runner, "__init__", runner))
        stack.enter_context(mock.patch.object(asyncio.Runner, "run", run))
        for cls in asyncio.AbstractEventLoop.__subclasses__():
            if not issubclass(cls, asyncio.BaseEventLoop):
                refuse(cls)
        later = mock.patch.object(asyncio.AbstractEventLoop, "__init_subclass__", classmethod(refuse))
        stack.enter_context(later)  # the function may import it
        yield


def _named(cls: type) -> str:
    return cls.__name__ if cls.__module__.startswith("asyncio") else f"{cls.__module__}.{cls.__name__}"


def _wants_its_own_loop(coro: Any) -> str:
    """`uvloop.run`, whose coroutine looks whether uvloop's loop runs it; empty for all others."""
    frame = getattr(coro, "cr_frame", None)
    return "uvloop.run" if frame is not None and frame.f_globals.get("__name__") == "uvloop" else ""


def _policy() -> type:
    """The class of the policy that `asyncio` asks for event loops."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # (from Python 3.14 on)
        return type(asyncio.get_event_loop_policy())


def _in_a_function(instead: Callable[[], OwnLoop], real: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda policy: instead() if can_wait() else real(policy)
