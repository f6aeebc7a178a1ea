"""The agent's SQLite databases, and the lock that another writer holds on them.

locks = DatabaseLocks([home, session_dir, cwd], mark="campaign/run")
proof = await locks.lock()      # from now on the agent reads "database is locked"; empty: there was nothing to lock
await locks.release()
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wedgehog.harness.sandbox.cleanup import RUN_VARIABLE

PROGRAM = (sys.executable, "-I", "-S", str(Path(__file__).with_name("locking.py")))
SQLITE = b"SQLite format 3"
"""How the file of a database begins."""
MOST = 20
WITHIN_S = 15.0


def is_database(file: Path) -> bool:
    """Whether a file is a SQLite database."""
    with suppress(OSError), file.open("rb") as open_:
        return open_.read(len(SQLITE)) == SQLITE
    return False


@dataclass
class DatabaseLocks:
    """The databases in an agent's folders; the process that holds the locks has `mark`."""

    folders: Sequence[Path]
    mark: str
    _process: asyncio.subprocess.Process | None = None

    async def lock(self) -> str:
        """Lock them all; return which ones were, or nothing."""
        if not (files := [*self._files()][:MOST]):
            return ""
        pipe = asyncio.subprocess.PIPE
        self._process = await asyncio.create_subprocess_exec(
            *PROGRAM,
            *map(str, files),
            env={RUN_VARIABLE: self.mark},
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        names = [Path(line).name async for line in self._lines(self._process)]
        return f"another process holds the write lock of {', '.join(names)}" if names else ""

    async def release(self) -> None:
        """Give the locks back."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            try:
                await asyncio.wait_for(self._process.wait(), WITHIN_S)
            except TimeoutError:
                with suppress(ProcessLookupError):
                    self._process.kill()

    def _files(self) -> Iterator[Path]:
        seen = set[Path]()
        for folder in self.folders:
            for file in sorted(folder.rglob("*")):
                if file not in seen and file.is_file() and not file.is_symlink() and is_database(file):
                    seen.add(file)
                    yield file

    @staticmethod
    async def _lines(process: asyncio.subprocess.Process) -> AsyncIterator[str]:
        assert process.stdout is not None  # noqa: S101  it was asked for
        with suppress(TimeoutError):
            async with asyncio.timeout(WITHIN_S):
                while line := (await process.stdout.readline()).decode().strip():
                    yield line
