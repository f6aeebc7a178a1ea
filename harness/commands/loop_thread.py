"""An event loop in a thread of its own, for callers that do not run one."""

import asyncio
import threading
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs from the start on until `end`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wedgehog", daemon=True)
        self._thread.start()

    def do(self, work: Awaitable[T]) -> T:
        """Await something in the thread, and return its result."""

        async def awaited() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(awaited(), self._loop).result()

    def end(self) -> None:
        """Stop the loop, and wait for the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
