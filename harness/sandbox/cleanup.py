"""Finding and ending processes by the mark that they carry in their environment: only this user's, never ourselves."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

import psutil

RUN_VARIABLE = "WEDGEHOG_RUN"
"""Its value is a path of names, `campaign/run/agent`: a sweep of one of them takes all that lie below it."""

BETWEEN_SCANS_S = 0.05

Find = Callable[[], Iterable[psutil.Process]]


def mark_of(process: psutil.Process) -> str | None:
    """The mark that `process` was started with; None without one, or where it cannot be read."""
    with suppress(psutil.Error, OSError):
        return process.environ().get(RUN_VARIABLE)
    return None


def carrying(mark: str) -> list[psutil.Process]:
    """Every process of this user that carries `mark`, or one that lies below it."""
    return [process for process in psutil.process_iter() if ours_to_end(process) and lies_below(mark_of(process), mark)]


def lies_below(found: str | None, mark: str) -> bool:
    """Whether `found` is `mark` or begins with it and a slash (`c/1` is no part of `c/10`)."""
    return bool(mark) and found is not None and (found == mark or found.startswith(mark + "/"))


def ours_to_end(process: psutil.Process) -> bool:
    """Whether it is another process, of this user."""
    with suppress(psutil.Error, OSError):
        return process.pid != os.getpid() and process.uids().real == os.getuid()
    return False


def alive(process: psutil.Process) -> bool:
    """Whether it still runs (a zombie has ended; a pid that was given away again is somebody else)."""
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def end_all(find: Find, pause: Callable[[float], object], within_s: float = 5.0) -> list[int]:
    """SIGKILL what `find` finds until it finds nothing twice in a row; the pids still there after `within_s`.

    Once is not enough: what was forking while it was looked for is found only by the next look. psutil checks a
    process's birth time before each signal, so a pid that was given away again is safe.
    """
    quiet, left = 0, 0.0
    living: list[psutil.Process] = []
    while quiet < 2 and left <= within_s:
        living = [process for process in find() if alive(process)]
        for process in living:
            with suppress(psutil.Error):
                process.kill()
        quiet = 0 if living else quiet + 1
        if quiet < 2:
            pause(BETWEEN_SCANS_S)
            left += BETWEEN_SCANS_S
    return [process.pid for process in living if alive(process)]
