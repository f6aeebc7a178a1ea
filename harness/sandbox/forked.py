"""Processes of a run that a warm host forks instead of Wedgehog starting them; Wedgehog is their parent."""

import asyncio
import os
from contextlib import suppress
from typing import Protocol


class Process(Protocol):
    """What a run uses of a process, whether it was started or forked."""

    @property
    def pid(self) -> int:
        """Its pid."""

    @property
    def returncode(self) -> int | None:
        """None while it runs; the negative signal number if a signal ended it."""

    @property
    def stdin(self) -> asyncio.StreamWriter | None:
        """Its stdin, if that is a pipe."""

    async def wait(self) -> int:
        """Wait for its end; its exit code."""


class Forked:
    """Waits for the end of a forked process; Linux only. Needs a running event loop."""

    stdin = None

    def __init__(self, pid: int) -> None:
        self.pid, self.returncode = pid, None
        self._over, self._loop = asyncio.Event(), asyncio.get_running_loop()
        self._handle = os.pidfd_open(pid)
        self._loop.add_reader(self._handle, self._ended)

    returncode: int | None

    async def wait(self) -> int:
        """Wait for its end; its exit code."""
        await self._over.wait()
        assert self.returncode is not None  # noqa: S101  it is over
        return self.returncode

    def _ended(self) -> None:
        self._loop.remove_reader(self._handle)
        os.close(self._handle)
        self.returncode = 255  # as in asyncio, if its exit code was read elsewhere
        with suppress(ChildProcessError):
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._over.set()
