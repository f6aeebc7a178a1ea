"""Work beside a run, for as long as it lasts."""

import asyncio
import contextlib
from typing import Self


class Meanwhile:
    """An async context manager that does its work while it is open."""

    async def __aenter__(self) -> Self:
        self._working = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._working

    async def _work(self) -> None:
        raise NotImplementedError
