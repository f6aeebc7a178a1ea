"""A watchdog process that ends all processes of a run when this process dies, even by SIGKILL.

It reads from our pipe. GOODBYE on the pipe means an orderly stop; end of file without GOODBYE means that we died.

    with WatchdogProcess("campaign", folder):
        ...                       # processes with WEDGEHOG_RUN=campaign/… and the folder do not outlive us
"""

import os
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from wedgehog.harness.sandbox.cleanup import RUN_VARIABLE

GOODBYE = b"done"
READY = b"ready"


def identity_of(folder: Path) -> tuple[int, int]:
    """Device and inode of a folder that this user owns.

    Errors: OSError, ValueError if another user owns it or it is not a real folder.
    """
    seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid():
        raise ValueError(f"{folder}: no folder of our own, so it is not ours to remove")
    return seen.st_dev, seen.st_ino


class WatchdogProcess:
    """Watches every process whose mark is `mark` or below it."""

    def __init__(self, mark: str, folder: Path | None = None) -> None:
        """Start it and wait until it is ready; `folder`, which we made, is removed with its content if we die.

        Errors: OSError, ValueError, RuntimeError if it does not start.
        """
        if not mark:
            raise ValueError("a watchdog process needs a mark")
        kept = [] if folder is None else [str(folder.absolute()), *map(str, identity_of(folder))]
        # With an empty mark it belongs to no run, so no run ends it.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "wedgehog.harness.sandbox.watchdog_main", mark, str(os.getpid()), *kept],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, RUN_VARIABLE: ""},
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101  it is a pipe
        with self._process.stdout as output:
            if output.read(len(READY)) != READY:
                self.stop()
                raise RuntimeError("the watchdog process did not start: processes could outlive this one")

    @property
    def pid(self) -> int:
        """Its pid."""
        return self._process.pid

    def stop(self, within_s: float = 5.0) -> None:
        """Stop it without ending any process. May be called twice."""
        with suppress(OSError, ValueError, subprocess.TimeoutExpired):
            assert self._process.stdin is not None  # noqa: S101  it is a pipe
            with self._process.stdin as pipe:
                pipe.write(GOODBYE)
            self._process.wait(within_s)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        """The watchdog process is ready."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it."""
        self.stop()
