"""Starts a program so that it ends when we die, on Linux: by SIGKILL too, and without a watchdog process."""

import os
import sys
from collections.abc import Sequence

PROGRAM = """\
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Asks the kernel for a signal at our death, then becomes the program, unless we died meanwhile.

A `preexec_fn` would run Python between fork and exec, which can deadlock where there are threads.
"""


def ends_with_us(argv: Sequence[str]) -> list[str]:
    """The command for a program that gets SIGKILL when the thread that starts it ends. Its pid stays the same."""
    if sys.platform != "linux":
        return list(argv)
    return [sys.executable, "-I", "-S", "-c", PROGRAM, str(os.getpid()), *argv]
