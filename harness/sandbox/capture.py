"""Capture the output of a process: its beginning and its last megabyte in memory, all of it in a log."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

HEAD_BYTES = 250_000
"""So much of the beginning is kept: an answer may stand before a line of many megabytes."""
KEPT_BYTES = 1_000_000
CHUNK_BYTES = 65_536


class Capture:
    """The read end of one pipe or terminal. `write_end` goes to the process; `started` closes our copy of it."""

    def __init__(self, log: Path, ends: tuple[int, int] | None = None) -> None:
        """Open a pipe, if no `ends` are given, and the log for appending. Needs a running event loop."""
        self._log = log.open("ab", buffering=0)
        self._read_end, self.write_end = ends or os.pipe()
        self._heard: Callable[[bytes], None] = lambda chunk: None
        os.set_blocking(self._read_end, False)
        self._head, self._kept = bytearray(), bytearray()
        self._lost = False
        self.last_s: float | None = None
        """When the last byte came, by the time of the event loop; None before the first."""
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
        for _ in range(1 + KEPT_BYTES // CHUNK_BYTES):
            if not self._read():
                return

    def listen(self, heard: Callable[[bytes], None]) -> None:
        """Call `heard` with what was read so far, with each chunk as it is read, and at the end with nothing."""
        self._heard = heard
        if self._head:
            heard(bytes(self._head + self._kept))
        if self._ended.is_set():
            heard(b"")

    def text(self) -> str:
        """The beginning and the last megabyte as text."""
        parts = (self._head, self._kept) if self._lost else (self._head + self._kept,)
        return "\n[… the middle is in the log]\n".join(part.decode("utf-8", "replace") for part in parts)

    def forget(self) -> None:
        """Drop the text of the previous turn."""
        self.read_now()
        self._head.clear()
        self._kept.clear()
        self._lost, self.last_s = False, None

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
        self.last_s = self._loop.time()
        self._heard(chunk)
        room = max(0, HEAD_BYTES - len(self._head))
        self._head += chunk[:room]
        self._kept += chunk[room:]
        if len(self._kept) > KEPT_BYTES:
            del self._kept[: len(self._kept) - KEPT_BYTES]
            self._lost = True
        return True
