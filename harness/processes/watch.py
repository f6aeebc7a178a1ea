"""The warden's own process: `python -m wedgehog.harness.processes.watch MARK PARENT`, its stdin our pipe."""

import os
import select
import signal
import sys
import threading

from wedgehog.harness.processes.sweep import carrying, end_all
from wedgehog.harness.processes.warden import GOODBYE, ON_DUTY

LOOK_AT_PARENT_S = 1.0
SWEEP_S = 5.0


def watch(mark: str, parent: int) -> None:
    """Wait for the pipe to end; without a goodbye on it, end all that carries `mark`.

    A forked child of the parent may hold the pipe open, hence the look now and then at who our parent is.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.write(1, ON_DUTY)
    while not select.select([0], [], [], LOOK_AT_PARENT_S)[0]:
        if os.getppid() != parent:
            break
    else:
        if os.read(0, len(GOODBYE)) == GOODBYE:
            return
    end_all(lambda: carrying(mark), threading.Event().wait, SWEEP_S)


if __name__ == "__main__":
    watch(sys.argv[1], int(sys.argv[2]))
