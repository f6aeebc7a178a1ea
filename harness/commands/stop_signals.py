"""Run a coroutine until it ends or the user stops it."""

import errno
import signal
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from wedgehog.harness.commands.console import err

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


def run_until_stopped(
    work: Coroutine[Any, Any, object],
    stopped: str = "interrupted; the report covers the finished runs",
    loop: "Callable[[], AbstractEventLoop] | None" = None,
) -> bool:
    """Run to the end, or until SIGINT, SIGTERM or SIGHUP, with cleanup; return whether it was interrupted."""
    import asyncio

    async def guarded() -> bool:
        task = asyncio.create_task(work)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_stack_of_a_bug)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # (A second signal would cancel the cleanup that the first one began.)
            loop.add_signal_handler(number, lambda: task.cancelling() or task.cancel())
        try:
            await task
        except asyncio.CancelledError:
            err.print(f"wedgehog: {stopped}")
            return True
        return False

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(guarded())


def _stack_of_a_bug(loop: "AbstractEventLoop", context: dict[str, Any]) -> None:
    """Print errors that no caller gets, but not that of a full disk: the command itself ends with a line about it."""
    wrong = context.get("exception")
    if not (isinstance(wrong, OSError) and wrong.errno in (errno.ENOSPC, errno.EDQUOT)):
        loop.default_exception_handler(context)
