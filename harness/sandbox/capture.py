"""Capture the output of a process: its beginning and its last megabyte in memory, all of it in a log."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from wedgehog.harness.sandbox.arrivals import TAIL_BYTES, Arrivals

HEAD_BYTES = 250_000
"""So much of the beginning is kept: an answer may stand before a line of many megabytes."""
CHUNK_BYTES = 65_536


class Capture:
    """The read end of one pipe or terminal. `write_end` goes to the process; `started` closes our copy of it."""

    def __init__(self, log: Path, ends: tuple[int, int] | None = None) -> None:
        """Open a pipe, if no `ends` are given, and the log for appending. Needs a running event loop."""
        self._log = log.open("ab", buffering=0)
        self._read_end, self.write_end = ends or os.pipe()
        self._heard: Callable[[bytes], None] = lambda chunk: None
        os.set_blocking(self._read_end, False)
        self.arrived = Arrivals(HEAD_BYTES)
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._read_end, self._read)

    def started(self) -> None:
        """Close our copy of the write end; without that, end of file never arrives."""
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    async def drained(self, within_s: float) -> None:
        """Return when every process has closed the write end, or after `within_s`; `text` is then up to date."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), within_s)
        self.read_now()

    def read_now(self) -> None:
        """Read what is in the pipe, without waiting; bounded, because a process may write without end."""
        for _ in range(1 + TAIL_BYTES // CHUNK_BYTES):
            if not self._read():
                return

    def listen(self, heard: Callable[[bytes], None]) -> None:
        """Call `heard` with what was read so far, with each chunk as it is read, and at the end with nothing."""
        self._heard = heard
        if so_far := self.arrived.data:
            heard(so_far)
        if self._ended.is_set():
            heard(b"")

    def text(self) -> str:
        """The beginning and the last megabyte as text."""
        return self.arrived.data.decode("utf-8", "replace")

    def forget(self) -> None:
        """Drop the text of the previous turn."""
        self.read_now()
        self.arrived = Arrivals(HEAD_BYTES)

    def close(self) -> None:
        """Stop reading and close the log."""
        self.started()
        if self._read_end >= 0:
            self._loop.remove_reader(self._read_end)
            os.close(self._read_end)
            self._read_end = -1
        self._log.close()
        self._ended.set()

    def _read(self) -> bool:
        """Read one chunk; return whether there may be more."""
        if self._ended.is_set():
            return False
        try:
            chunk = os.read(self._read_end, CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self._loop.remove_reader(self._read_end)
            self._ended.set()
            self._heard(b"")
            return False
        self._log.write(chunk)
        self.arrived.add(chunk)
        self._heard(chunk)
        return True
