"""Runs a coroutine in the simulated world: virtual time, TCP in memory, seeded randomness."""

import contextlib
import os
import random
from collections.abc import Callable, Coroutine, Iterator
from typing import TypeVar

from wedgehog.harness.sim.guard import guarded, inline_threads
from wedgehog.harness.sim.loop import SimLoop
from wedgehog.harness.sim.tasks import cancel_all

Value = TypeVar("Value")


def simulate(main: Callable[[], Coroutine[None, None, Value]], *, seed: int = 0, loop: SimLoop | None = None) -> Value:
    """Run `main()` in virtual time and return its result; tasks that are left are cancelled.

    >>> import asyncio
    >>> async def hour() -> str:
    ...     await asyncio.sleep(3600)
    ...     return "done"
    >>> simulate(hour)
    'done'

    Raises:
        SimDeadlockError: every task waits, and no timer is set.
    """
    loop = loop or SimLoop()
    try:
        with seeded(seed), inline_threads(), guarded():
            try:
                return loop.run_until_complete(main())
            finally:
                cancel_all(loop)
                loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let `random`, `secrets`, `uuid` and `os.urandom` give the same values for the same seed."""
    state, source = random.getstate(), random.Random(seed)  # noqa: S311  it must be reproducible
    real = os.urandom
    random.seed(source.getrandbits(64))
    os.urandom = random._urandom = source.randbytes  # type: ignore[attr-defined]
    try:
        yield
    finally:
        os.urandom = random._urandom = real  # type: ignore[attr-defined]
        random.setstate(state)
