"""A small disk for one agent, which can be filled and freed again without root: see `mounting`.

disk = SmallDisk(run_folder, [home, session_dir])
await disk.open("campaign/run/agent")
argv = disk.argv(["agent", "hello"], cwd)         # runs the agent on the disk
proof = await disk.fill(free_bytes=0)             # from now on, writes fail with ENOSPC
await disk.heal()
"""

import asyncio
import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from wedgehog.harness.sandbox.mounting import DONE, LARGE, PAGE, READY
from wedgehog.harness.sandbox.namespaces import PROGRAM, WITHIN_S, Namespaces, namespaces_refused


class NoDiskError(Exception):
    """The small disk cannot be created."""


class SmallDisk(Namespaces):
    """One tmpfs over several folders of one agent; other processes do not see it."""

    def __init__(self, place: Path, folders: Sequence[Path]) -> None:
        """The disk is mounted below `place` and covers `folders` for processes that are started on it."""
        self._disk, self._folders = place.absolute() / "disk", [folder.absolute() for folder in folders]

    async def open(self, mark: str) -> None:
        """Create the disk and copy the folders' content to it. Its keeper process has `mark`. Errors: NoDiskError."""
        pipe = asyncio.subprocess.PIPE
        await self._keep([*PROGRAM, "hold", str(self._disk), *map(str, self._folders)], mark, stdin=pipe, stdout=pipe)
        if await self._reply() != READY:
            raise NoDiskError(f"cannot create a small disk: {disk_unavailable_reason() or 'no reason given'}")

    def outside(self, path: Path) -> Path:
        """The path at which this process finds the agent's file `path`."""
        below = any(path.is_relative_to(folder) for folder in self._folders)
        return Path(f"/proc/{self._pid}/root{path}") if below and self._process is not None else path

    async def fill(self, free_bytes: int) -> str:
        """Leave `free_bytes` (in whole pages) free; return the proof, or an empty string if there is none."""
        if await self._request(free_bytes) != DONE:
            return ""
        size = free_bytes // PAGE * PAGE + 1
        return f"a file of {size} bytes could not be written: ENOSPC" if self._refuses(size) else ""

    async def heal(self) -> None:
        """Free space again."""
        await self._request(LARGE)

    async def _request(self, free_bytes: int) -> str:
        assert self._process is not None and self._process.stdin is not None  # noqa: S101  it is open
        self._process.stdin.write(b"%d\n" % free_bytes)
        return await self._reply()

    async def _reply(self) -> str:
        assert self._process is not None and self._process.stdout is not None  # noqa: S101  it was started
        with suppress(TimeoutError):
            return (await asyncio.wait_for(self._process.stdout.readline(), WITHIN_S)).decode().strip()
        return ""

    def _refuses(self, size: int) -> bool:
        probe = self.outside(self._folders[0]) / f".wedgehog-probe-{self._pid}"
        try:
            with probe.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as wrong:
            return wrong.errno == errno.ENOSPC
        finally:
            probe.unlink(missing_ok=True)
        return False


@cache
def disk_unavailable_reason() -> str | None:
    """Why this system cannot create a small disk; None if it can. Tried once."""
    if sys.platform != "linux":
        return "a small disk needs Linux user namespaces"
    with tempfile.TemporaryDirectory(prefix="wedgehog-disk-") as folder:
        Path(folder, "home").mkdir()
        words = [*PROGRAM, "hold", f"{folder}/disk", f"{folder}/home"]
        try:
            tried = subprocess.run(words, input="0\n", capture_output=True, text=True, timeout=WITHIN_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as wrong:
            return f"user namespaces: {wrong}"
    if tried.stdout.split() == [READY, DONE]:
        return None
    return namespaces_refused(tried.stderr, f"exit code {tried.returncode}")
