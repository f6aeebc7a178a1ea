"""A watchdog process that ends all processes of a run when this process dies, even by SIGKILL.

It reads from our pipe. GOODBYE on the pipe means an orderly stop; end of file without GOODBYE means that we died.

    with WatchdogProcess("campaign", folder):
        ...                       # processes with WEDGEHOG_RUN=campaign/… and the folder do not outlive us
"""

import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

from wedgehog.harness.sandbox.cleanup import RUN_VARIABLE, carrying, end_all

GOODBYE = b"done"
READY = b"ready"
LOOK_AT_PARENT_S = 1.0
SWEEP_S = 5.0
PROGRAM = "from wedgehog.harness.sandbox.watchdog_process import main; main()"


def identity_of(folder: Path) -> tuple[int, int]:
    """Device and inode of a real folder that this user owns. Errors: OSError, ValueError if it is none."""
    seen = folder.lstat()
    if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid():
        raise ValueError(f"{folder}: no folder of our own, so it is not ours to remove")
    return seen.st_dev, seen.st_ino


class WatchdogProcess:
    """Watches every process whose mark is `mark` or below it."""

    def __init__(self, mark: str, folder: Path | None = None) -> None:
        """Start it, wait until ready; if we die it removes `folder`. Errors: OSError, ValueError, RuntimeError."""
        if not mark:
            raise ValueError("a watchdog process needs a mark")
        kept = [] if folder is None else [str(folder.absolute()), *map(str, identity_of(folder))]
        # With an empty mark it belongs to no run, so no run ends it.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", PROGRAM, mark, str(os.getpid()), *kept],
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
        """The process id."""
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
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()


# ---- the watchdog process itself; its stdin is our pipe


def main() -> None:
    """The program; its arguments are MARK PARENT [FOLDER DEVICE INODE]."""
    mark, parent, *kept = sys.argv[1:]
    if watch(mark, int(parent)) and kept:
        remove(Path(kept[0]), int(kept[1]), int(kept[2]))


def watch(mark: str, parent: int) -> bool:
    """Wait for the end of pipe or parent (a fork may keep the pipe); end all unless GOODBYE came; return whether."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.write(1, READY)
    while not select.select([0], [], [], LOOK_AT_PARENT_S)[0]:
        if os.getppid() != parent:
            break
    else:
        if os.read(0, len(GOODBYE)) == GOODBYE:
            return False
    end_all(lambda: carrying(mark), threading.Event().wait, SWEEP_S)
    return True


def remove(folder: Path, device: int, inode: int) -> None:
    """Remove this folder, but not another one that replaced it; links inside it are removed, not followed."""
    with suppress(OSError, ValueError):
        if identity_of(folder) == (device, inode):
            shutil.rmtree(folder, ignore_errors=True)
