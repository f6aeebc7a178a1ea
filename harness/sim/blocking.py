"""Lets a blocking function run on the event loop without a thread: in a greenlet, which is set aside while it waits.

```
await run_blocking(function) ── starts ──▶ function() ── time.sleep(60) ──╮
                             ◀── what it waits for ───────────────────────╯
                             ── awaits that, then continues it ──▶ …
```

`time.sleep`, the connections of blocking clients (`blocking_socket.py`) and event loops of the function
(`own_loop.py`) call `wait_for` there.
"""

import asyncio
import contextvars
import importlib
import inspect
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any, TypeVar, cast

from wedgehog.harness.sim.errors import SimUnsupportedError

Waited = TypeVar("Waited")


def _greenlets() -> ModuleType | None:
    try:
        return importlib.import_module("greenlet")
    except ImportError:  # it is the extra `sync`
        return None


GREENLETS = _greenlets()


class BlockingError(SimUnsupportedError):
    """A blocking function cannot run here, because greenlet is not installed."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}, which is not `async def`, without greenlet (`pip install 'wedgehog[sync]'`)")


async def run_blocking(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a blocking function, and return its result. A cancellation is a KeyboardInterrupt in the function."""
    if GREENLETS is None:
        raise BlockingError(getattr(function, "__name__", repr(function)))
    blocking = GREENLETS.greenlet(lambda: function(*args, **options))
    blocking.gr_context = contextvars.copy_context()
    try:
        told = _switched(blocking.switch)
        while not blocking.dead:
            told = await _continued(blocking, told)
    except KeyboardInterrupt:
        raise asyncio.CancelledError from None
    return await told if inspect.isawaitable(told) else told


async def _continued(blocking: Any, waits: Coroutine[Any, Any, Any]) -> Any:
    """Await what the function waits for, and let it go on until it waits again, or ends."""
    try:
        value = await waits
    except asyncio.CancelledError:
        return _switched(blocking.throw, KeyboardInterrupt)
    except BaseException as error:
        return _switched(blocking.throw, error)
    return _switched(blocking.switch, value)


def _switched(switch: Callable[..., Any], *value: object) -> Any:
    """Go on in the function, which has no running event loop, until it waits or ends."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        return switch(*value)
    finally:
        asyncio._set_running_loop(loop)


def can_wait() -> bool:
    """Whether this code runs in a blocking function that `run_blocking` has called."""
    return GREENLETS is not None and GREENLETS.getcurrent().parent is not None


def wait_for(waits: Coroutine[Any, Any, Waited]) -> Waited:
    """Wait for a coroutine, in a blocking function."""
    assert GREENLETS is not None, "`can_wait` says whether it may be called"  # noqa: S101
    return cast(Waited, GREENLETS.getcurrent().parent.switch(waits))
