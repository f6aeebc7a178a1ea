"""The warden: a small process beside us that ends everything of a run when we die, even by SIGKILL.

It holds the read end of a pipe from us. A word on it means an orderly stop; its end without one means that we are gone.

    with Warden("campaign", folder):
        ...                       # whatever carries WEDGEHOG_RUN=campaign/… does not outlive us, nor does the folder
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
ON_DUTY = b"on duty"


def identity_of(folder: Path) -> tuple[int, int]:
    """Device and inode of a folder of our own, which no other folder of its name has.

    Errors: OSError, ValueError where it is somebody else's, or no real folder.
    """
    seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid():
        raise ValueError(f"{folder}: no folder of our own, so it is not ours to remove")
    return seen.st_dev, seen.st_ino


class WatchdogProcess:
    """Watches over every process whose mark is `mark` or lies below it."""

    def __init__(self, mark: str, folder: Path | None = None) -> None:
        """Start it, and return when it is on duty; `folder` is one that we made, and all in it may go with us.

        Errors: OSError, ValueError, RuntimeError if it is not on duty.
        """
        if not mark:
            raise ValueError("a warden without a mark would watch over nothing")
        kept = [] if folder is None else [str(folder.absolute()), *map(str, identity_of(folder))]
        # An empty mark of its own: it is nobody's orphan, and no sweep takes it.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "wedgehog.harness.sandbox.watchdog_main", mark, str(os.getpid()), *kept],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, RUN_VARIABLE: ""},
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101  it is a pipe
        with self._process.stdout as said:
            if said.read(len(ON_DUTY)) != ON_DUTY:
                self.stop()
                raise RuntimeError("the warden did not start: processes could be left behind if this one is killed")

    @property
    def pid(self) -> int:
        """Its pid."""
        return self._process.pid

    def stop(self, within_s: float = 5.0) -> None:
        """An orderly end: it leaves quietly and touches nothing. Twice is once."""
        with suppress(OSError, ValueError, subprocess.TimeoutExpired):
            assert self._process.stdin is not None  # noqa: S101  it is a pipe
            with self._process.stdin as pipe:
                pipe.write(GOODBYE)
            self._process.wait(within_s)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        """It is on duty."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """It is dismissed."""
        self.stop()
