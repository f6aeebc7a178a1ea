"""What a process prints: the last megabyte in memory, everything in a log."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

KEPT_BYTES = 1_000_000
CHUNK_BYTES = 65_536


class Capture:
    """One pipe's read end, read as it fills. `write_end` goes to the process and is closed here once it has it."""

    def __init__(self, log: Path) -> None:
        """Open the pipe and, to append to it, the log; must be called with an event loop running."""
        self._log = log.open("ab", buffering=0)
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._kept = bytearray()
        self._lost = False
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._read_end, self._read)

    def started(self) -> None:
        """The process has the write end: let go of ours, so that its end is seen."""
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    async def drained(self, within_s: float) -> None:
        """Return when every holder of the write end has closed it, or after `within_s`; `text` is up to date."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), within_s)
        self.read_now()

    def read_now(self) -> None:
        """Take what is in the pipe, without waiting; bounded, so that an endless talker cannot keep us."""
        for _ in range(1 + KEPT_BYTES // CHUNK_BYTES):
            if not self._read():
                return

    def text(self) -> str:
        """The last megabyte of it, as text."""
        said = self._kept.decode("utf-8", "replace")
        return f"[… the beginning is in the log]\n{said}" if self._lost else said

    def forget(self) -> None:
        """A new turn begins: what was said before belongs to the last one."""
        self.read_now()
        self._kept.clear()
        self._lost = False

    def close(self) -> None:
        """Stop listening."""
        self.started()
        if self._read_end >= 0:
            self._loop.remove_reader(self._read_end)
            os.close(self._read_end)
            self._read_end = -1
        self._log.close()
        self._ended.set()

    def _read(self) -> bool:
        """Take one chunk; whether there may be more."""
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
            return False
        self._log.write(chunk)
        self._kept += chunk
        if len(self._kept) > KEPT_BYTES:
            del self._kept[: len(self._kept) - KEPT_BYTES]
            self._lost = True
        return True
