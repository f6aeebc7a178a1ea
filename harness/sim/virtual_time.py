"""An asyncio event loop whose clock is virtual, and which waits for nothing but timers.

```
ready handles ──▶ run them                        time stands still
none ready    ──▶ jump to the next timer          time passes at once
no timer      ──▶ SimDeadlockError                nothing can happen any more
```
"""

import asyncio
import heapq
import itertools
from collections import deque
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import Any, Protocol

from wedgehog.harness.sim.errors import SimDeadlockError, SimHorizonError

START_S = 1000.0
"""Where the virtual clock begins; a small number, because sums of floats must be exact to a nanosecond."""
RESOLUTION_S = 1e-9
"""Timers this close are due together."""
FEW_TIMERS = 100
"""The most cancelled timers that are kept."""
PATIENCE_TURNS, SPIN_S = 10_000, 0.001
"""After this many turns without a wait, time passes with each turn: a busy wait must end too."""

Callback = Callable[..., object]


class DueLater(Protocol):
    """What a loop runs when its time has come: a timer, or a stream with bytes on their way, which needs no timer."""

    _cancelled: bool
    _scheduled: bool
    """Whether the loop has it."""

    def _run(self) -> object:
        """Its time has come."""


class _Handle(asyncio.Handle):
    """A callback of a loop without debug mode: a run makes a thousand of them."""

    __slots__ = ()

    def __init__(
        self, callback: Callback, args: tuple[Any, ...], loop: "VirtualTimeLoop", context: Context | None
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop, self._callback, self._args = loop, callback, args
        self._cancelled, self._repr, self._source_traceback = False, None, None


class _Timer(asyncio.TimerHandle):
    """A callback at a time."""

    __slots__ = ()

    def __init__(
        self, when: float, callback: Callback, args: tuple[Any, ...], loop: "VirtualTimeLoop", context: Context | None
    ) -> None:
        self._context = copy_context() if context is None else context
        self._loop, self._callback, self._args = loop, callback, args
        self._cancelled, self._repr, self._source_traceback = False, None, None
        self._when, self._scheduled = when, True


class _NoSelector:
    """Takes the place of asyncio's selector, which `BaseEventLoop` closes."""

    def close(self) -> None:
        """There is nothing to close."""


class VirtualTimeLoop(asyncio.BaseEventLoop):
    """Replaces asyncio's callbacks, timers and turns. It has no debug mode."""

    _closed: bool
    _stopping: bool
    _ready: deque[asyncio.Handle]

    def __init__(self, horizon_s: float | None, on_jump: Callable[[float], None]) -> None:
        """`horizon_s` limits the virtual time; `on_jump` gets the new time at each jump."""
        super().__init__()
        self._now = START_S
        self._end = None if horizon_s is None else START_S + horizon_s
        self._on_jump = on_jump
        self._selector = _NoSelector()
        self._turns = 0
        self._timers: list[tuple[float, int, Any]] = []
        """A heap. Timers that are due at one time are called in the order in which they were set."""
        self._serials = itertools.count()
        self._cancelled = 0
        """How many of the timers are cancelled."""
        self._moments: list[tuple[float, asyncio.Future[None]]] = []
        """What `next_moment` gave, each with its time."""

    get_debug = staticmethod(bool)
    """It is False, and C: asyncio asks for it whenever it makes a future or a task."""

    def report(self) -> str:
        """What each task waits for."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the loop, and forget its timers."""
        super().close()
        self._timers.clear()

    # ---- time

    def time(self) -> float:
        """The virtual time."""
        return self._now

    def advance(self, now: float) -> None:
        """Move the clock. Raises SimHorizonError behind the end of the simulated time."""
        if self._end is not None and now > self._end:
            raise SimHorizonError(f"more than {self._end - START_S:g} virtual seconds\n{self.report()}")
        self._now = now
        self._on_jump(now)

    def next_moment(self) -> asyncio.Future[None]:
        """Done when time has passed, and all that was to be done then is done."""
        found = self.create_future()
        self._moments.append((self._now, found))
        return found

    # ---- callbacks

    def call_soon(  # type: ignore[override]
        self, callback: Callback, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Call it in the next turn."""
        if self._closed:
            raise RuntimeError("Event loop is closed")
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callback, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call it `delay` virtual seconds from now."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callback, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call it at a virtual time."""
        if self._closed:
            raise RuntimeError("Event loop is closed")
        timer = _Timer(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._serials), timer))
        return timer

    def run_at(self, when: float, due: DueLater) -> None:
        """Run it at a virtual time."""
        due._scheduled = True
        heapq.heappush(self._timers, (when, next(self._serials), due))

    def _timer_handle_cancelled(self, timer: asyncio.TimerHandle) -> None:
        """Called before a timer is cancelled; once most timers are, those are forgotten."""
        if not timer._scheduled:  # type: ignore[attr-defined]
            return
        self._cancelled += 1
        if self._cancelled > FEW_TIMERS and self._cancelled * 2 > len(self._timers):
            self._timers[:] = [entry for entry in self._timers if not entry[2]._cancelled]
            heapq.heapify(self._timers)
            self._cancelled = 1

    # ---- turns

    def _run_once(self) -> None:
        """Turns until the loop is to stop: what is ready runs; if nothing is, the clock jumps to the next timer."""
        ready, timers, heappop = self._ready, self._timers, heapq.heappop
        while True:
            if ready or self._stopping:
                self._spin()
            else:
                self._jump()
            due = self._now + RESOLUTION_S
            while timers and timers[0][0] < due:
                timer = heappop(timers)[2]
                timer._scheduled = False
                if timer._cancelled:
                    self._cancelled -= 1
                else:
                    ready.append(timer)
            for _ in range(len(ready)):
                handle = ready.popleft()
                if not handle._cancelled:
                    handle._run()
            if self._stopping:
                return

    def _spin(self) -> None:
        """Count a turn without a wait."""
        self._turns += 1
        if self._turns > PATIENCE_TURNS:
            self.advance(self._now + SPIN_S)

    def _jump(self) -> None:
        """Move the clock to the next timer."""
        if self._moments and self._is_next_moment():
            return
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
            self._cancelled -= 1
        if not timers:
            raise SimDeadlockError(self.report())
        if timers[0][0] > self._now:
            self._turns = 0
            self.advance(timers[0][0])
        else:
            self._spin()

    def _is_next_moment(self) -> bool:
        """Wake the waiting tasks; whether there are any."""
        waiting = [(since, it) for since, it in self._moments if not it.done()]
        over = [it for since, it in waiting if since < self._now]
        self._moments = [(since, it) for since, it in waiting if since >= self._now]
        for it in over:
            it.set_result(None)
        return bool(over)


async def a_moment(pause: Callable[[], Awaitable[object]]) -> None:
    """Let something happen: in virtual time wait until time has passed, elsewhere for the end of `pause`.

    A program that looks again and again would otherwise be most of what happens in virtual time.
    """
    loop = asyncio.get_running_loop()
    await (loop.next_moment() if isinstance(loop, VirtualTimeLoop) else pause())
