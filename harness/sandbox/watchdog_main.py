"""The watchdog process's program; stdin is our pipe: `python -m … MARK PARENT [FOLDER DEVICE INODE]`."""

import os
import select
import shutil
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

from wedgehog.harness.sandbox.cleanup import carrying, end_all
from wedgehog.harness.sandbox.watchdog_process import GOODBYE, READY, identity_of

LOOK_AT_PARENT_S = 1.0
SWEEP_S = 5.0


def watch(mark: str, parent: int) -> bool:
    """Wait for the end of the pipe; without GOODBYE, end all processes with `mark`. Return whether it did so.

    A forked child of the parent may keep the pipe open, so the parent's pid is checked too.
    """
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


if __name__ == "__main__":
    mark, parent, *kept = sys.argv[1:]
    if watch(mark, int(parent)) and kept:
        remove(Path(kept[0]), int(kept[1]), int(kept[2]))
