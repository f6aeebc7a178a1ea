"""Runs a coroutine in the simulated world: virtual time, TCP in memory, seeded randomness.

```python
with SimWorld() as world:              # once for a process
    for seed in range(100):
        world.run(main, seed=seed)
```
"""

import contextlib
import gc
import importlib
import os
import platform
import random
import uuid
from collections.abc import Callable, Coroutine, Iterator
from typing import Self, TypeVar

from wedgehog.harness.sim.frozen import frozen_time
from wedgehog.harness.sim.garbage import search_rarely
from wedgehog.harness.sim.guard import guarded, inline_threads
from wedgehog.harness.sim.lazy_ca import lazy_ca
from wedgehog.harness.sim.loop import SimLoop
from wedgehog.harness.sim.net import Net
from wedgehog.harness.sim.processes import simulated_signals
from wedgehog.harness.sim.tasks import cancel_all

Value = TypeVar("Value")


def simulate(
    main: Callable[[], Coroutine[None, None, Value]], *, seed: int | str = 0, loop: SimLoop | None = None
) -> Value:
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
        with seeded(seed), inline_threads(), guarded(loop.refusal), simulated_signals(loop.processes):
            try:
                return loop.run_until_complete(main())
            finally:
                cancel_all(loop)
                loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


class SimWorld:
    """A process whose calendar and clocks are virtual too; a context manager. Each run begins at the same time."""

    def __enter__(self) -> Self:
        """Freeze `time` and `datetime`, which takes up to half a second."""
        with contextlib.suppress(ImportError):  # it tries a real socket when it is imported, as an agent may do later
            importlib.import_module("urllib3.util.connection")
        platform.processor()  # Python starts `uname` to know it, once for a process; openai's client asks for it
        self._open = contextlib.ExitStack()
        self._open.enter_context(lazy_ca())
        self._open.enter_context(frozen_time())
        self._open.enter_context(_rare_collections())
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._open.close()

    def run(
        self,
        main: Callable[[], Coroutine[None, None, Value]],
        *,
        seed: int | str = 0,
        net: Net | None = None,
        horizon_s: float | None = None,
    ) -> Value:
        """`simulate` with `time` and `datetime` at the virtual time."""
        gc.collect(0)  # what the last run left is young and dead: later, a search would look through this run too
        with frozen_time() as move:
            return simulate(main, seed=seed, loop=SimLoop(net, horizon_s=horizon_s, on_jump=move))


@contextlib.contextmanager
def _rare_collections() -> Iterator[None]:
    before = gc.get_threshold()
    search_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextlib.contextmanager
def seeded(seed: int | str) -> Iterator[None]:
    """Let `random`, `secrets`, `uuid` and `os.urandom` give the same values for the same seed."""
    state, source = random.getstate(), random.Random(seed)  # noqa: S311  it must be reproducible
    real = os.urandom
    random.seed(source.getrandbits(64))
    uuid._last_timestamp = None  # type: ignore[attr-defined]
    os.urandom = random._urandom = source.randbytes  # type: ignore[attr-defined]
    try:
        yield
    finally:
        os.urandom = random._urandom = real  # type: ignore[attr-defined]
        random.setstate(state)
