"""Keeps real sockets, processes, threads and sleeps out of virtual time, with one clear error for each.

Async code that works on an event loop only never meets it. What blocks the thread would stop virtual time, or talk to
a port of this machine that has the number of a simulated one.
"""

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

from wedgehog.harness.sim.blocking import can_wait, wait_for
from wedgehog.harness.sim.errors import SimUnsupportedError

_AUDITED = {
    "socket.connect": "a real socket",
    "socket.bind": "a real socket",
    "socket.getaddrinfo": "a blocking look-up of a host",
    "socket.gethostbyname": "a blocking look-up of a host",
    "subprocess.Popen": "a child process",
    "os.fork": "a child process",
    "os.forkpty": "a child process",
    "os.posix_spawn": "a child process",
    "os.system": "a child process",
    "os.exec": "a child process",
    "_thread.start_new_thread": "a thread",
}
"""Audit events of Python, and what they begin."""
MakesError = Callable[[str], SimUnsupportedError]
_guarded: dict[int, MakesError] = {}
"""The threads in which a guard is on, and what makes the error."""


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _guarded and (what := _AUDITED.get(event)) and (refusal := _guarded.get(threading.get_ident())):
        raise refusal(what)


_install: list[Callable[[], None]] = [lambda: sys.addaudithook(_audit)]
"""An audit hook can't be removed, so it is added once, when it is first needed."""


@contextlib.contextmanager
def guarded(refusal: MakesError = SimUnsupportedError) -> Iterator[None]:
    """Refuse in this thread whatever virtual time cannot wait for, with the error that `refusal` makes."""
    while _install:
        _install.pop()()
    me = threading.get_ident()
    with _no_blocking(me, refusal):
        _guarded[me] = refusal
        try:
            yield
        finally:
            del _guarded[me]


@contextlib.contextmanager
def _no_blocking(me: int, refusal: MakesError) -> Iterator[None]:
    sleep, start = time.sleep, threading.Thread.start

    def no_sleep(seconds: float) -> None:
        if threading.get_ident() != me:
            sleep(seconds)
        elif can_wait():
            wait_for(asyncio.sleep(seconds))
        else:
            raise refusal(f"time.sleep({seconds:g}), which blocks the event loop,")

    def no_start(thread: threading.Thread) -> None:
        if threading.get_ident() == me:
            raise refusal(f"a thread ({thread.name})")
        start(thread)

    with mock.patch.object(time, "sleep", no_sleep), mock.patch.object(threading.Thread, "start", no_start):
        yield


@contextlib.contextmanager
def inline_threads() -> Iterator[None]:
    """Let anyio's worker threads run inline, as the loop's executors do; openai and anthropic use one."""
    try:
        from anyio._backends._asyncio import AsyncIOBackend
    except ImportError:
        yield
        return

    async def inline(cls: type, func: Callable[..., Any], args: tuple[Any, ...], *_: Any, **options: Any) -> Any:
        return func(*args)

    with mock.patch.object(AsyncIOBackend, "run_sync_in_worker_thread", classmethod(inline)):
        yield
