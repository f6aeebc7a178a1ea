"""A terminal for one process: a PTY pair, and the launcher that makes it the process's controlling terminal.

    ours, its = open_terminal(columns=120, rows=40)
    owned = await tree.start(as_controlling(["my-tui"]), terminal=(ours, its), ...)

With a controlling terminal, Ctrl-C is SIGINT for whatever runs in the foreground, as for a person's keyboard.
"""

import fcntl
import os
import pty
import struct
import sys
import termios
from collections.abc import Sequence

_LAUNCH = "import fcntl,os,sys,termios;fcntl.ioctl(0,termios.TIOCSCTTY,0);os.execvp(sys.argv[1],sys.argv[1:])"


def open_terminal(columns: int, rows: int) -> tuple[int, int]:
    """Our end and the process's end of a new terminal of this size."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    return ours, its


def as_controlling(argv: Sequence[str]) -> list[str]:
    """The command line that takes the terminal and then becomes `argv`, under the same pid."""
    return [sys.executable, "-I", "-S", "-c", _LAUNCH, *argv]


def press(terminal: int, keys: bytes) -> int:
    """Type `keys`; how many of them the terminal took now: all, if the process no longer reads."""
    try:
        return os.write(terminal, keys)
    except BlockingIOError:
        return 0
    except OSError:
        return len(keys)
