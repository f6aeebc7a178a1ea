"""Find and end the processes of a run by the mark in their environment: only this user's, never our own process."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress

import psutil

RUN_VARIABLE = "WEDGEHOG_RUN"
"""Environment variable that holds the mark, a path: `campaign/run/agent`. Ending a path ends all paths below it too."""

FORKS = "warm"
"""The last part of the mark of a process that forks others for runs: they have this mark too, for some milliseconds."""

BETWEEN_SCANS_S = 0.05
MOST_AT_ONCE = 2**18
"""Bytes of one read of an environment."""

Find = Callable[[], Iterable[psutil.Process]]


def mark_of(process: psutil.Process) -> str | None:
    """The mark that `process` was started with; None if it has none or cannot be read."""
    with suppress(psutil.Error, OSError):
        if psutil.LINUX:  # every process of the machine is asked: psutil would decode all that each has
            return mark_in(_read(f"/proc/{process.pid}/environ"))
        return process.environ().get(RUN_VARIABLE)
    return None


def _read(path: str) -> bytes:
    """All of a file of /proc. A `Path` takes three times as long, and a scan reads one for each process."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(file, MOST_AT_ONCE), b""))
    finally:
        os.close(file)


def mark_in(environ: bytes) -> str | None:
    """The mark in an environment as Linux shows it, `NAME=value` with a zero byte behind each; None if it has none."""
    name = f"{RUN_VARIABLE}=".encode()
    values = environ.split(b"\0") if name in environ else ()
    return next((os.fsdecode(it[len(name) :]) for it in values if it.startswith(name)), None)


def carrying(mark: str) -> list[psutil.Process]:
    """Every process of this user with `mark`, or with a mark below it."""
    return [process for process in psutil.process_iter() if lies_below(mark_of(process), mark) and ours_to_end(process)]


def lies_below(found: str | None, mark: str) -> bool:
    """Whether `found` is `mark` or starts with `mark` and a slash (`c/10` is not below `c/1`)."""
    return bool(mark) and found is not None and (found == mark or found.startswith(mark + "/"))


def ours_to_end(process: psutil.Process) -> bool:
    """Whether it is another process of this user."""
    with suppress(psutil.Error, OSError):
        return process.pid != os.getpid() and process.uids().real == os.getuid()
    return False


def alive(process: psutil.Process) -> bool:
    """Whether it still runs. A zombie does not, nor does a process whose pid belongs to a new process."""
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def end_all(find: Find, pause: Callable[[float], object], within_s: float = 5.0) -> list[int]:
    """SIGKILL what `find` returns until two calls in a row return nothing; return the pids alive after `within_s`.

    One call is not enough: a process that forks during a call can be missed by it. psutil compares creation times
    before each signal, so that a reused pid gets no signal.
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
