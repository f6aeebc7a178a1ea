"""Send one signal to several processes, and prove that it was delivered and, for SIGKILL, that they ended."""

import os
import re
import signal
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from wedgehog.harness.sandbox.cleanup import alive

LOOK_EVERY_S = 0.005


def tree(leader: int) -> Iterator[psutil.Process]:
    """The process `leader`, then its descendants and its process group; nothing if it has ended."""
    with suppress(psutil.Error):
        top = psutil.Process(leader)
        if alive(top):
            yield top
            yield from top.children(recursive=True)
            yield from _group(leader)


def _group(leader: int) -> Iterable[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(OSError):
            if os.getpgid(process.pid) == leader:
                yield process


def deliver(find: Callable[[], Iterable[psutil.Process]], number: signal.Signals) -> list[psutil.Process]:
    """Send `number` to all found, return those alive then; SIGKILL and SIGSTOP stop all first, unseen by others."""
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        return [process for process in dict.fromkeys(find()) if alive(process) and _sent(process, number)]
    still: dict[psutil.Process, None] = {}
    found = True
    while found:
        found = False
        for process in find():  # the generator looks for the next process after this one has stopped
            if process not in still and alive(process) and _sent(process, signal.SIGSTOP):
                still[process] = None
                found = True
    return [process for process in still if _sent(process, number)]


def _sent(process: psutil.Process, number: signal.Signals) -> bool:
    with suppress(psutil.Error):
        process.send_signal(number)
        return True
    return False


async def gone(
    processes: Iterable[psutil.Process], sleep: Callable[[float], Awaitable[None]], within_s: float
) -> list[int]:
    """Wait until all have ended; return the pids of those that have not after `within_s`."""
    return await _remaining(processes, alive, sleep, within_s)


async def stopped(
    processes: Iterable[psutil.Process], sleep: Callable[[float], Awaitable[None]], within_s: float
) -> list[int]:
    """Wait until all are stopped or have ended; return the pids of those that still run after `within_s`."""
    return await _remaining(processes, lambda process: alive(process) and not _is_stopped(process), sleep, within_s)


async def _remaining(
    processes: Iterable[psutil.Process],
    remains: Callable[[psutil.Process], bool],
    sleep: Callable[[float], Awaitable[None]],
    within_s: float,
) -> list[int]:
    left, waited_s = list(processes), 0.0
    while (left := list(filter(remains, left))) and waited_s < within_s:
        await sleep(LOOK_EVERY_S)
        waited_s += LOOK_EVERY_S
    return [process.pid for process in left]


def _is_stopped(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        status = process.status()
        in_kernel = status == psutil.STATUS_DISK_SLEEP and _stops_next(process.pid)
        return in_kernel or status in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    return True


def _stops_next(pid: int) -> bool:
    """Whether SIGSTOP waits for the process to leave the kernel, as after `vfork`; it runs nothing before it stops."""
    with suppress(OSError):
        found = re.search(r"^ShdPnd:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
        return found is not None and bool(int(found[1], 16) & 1 << signal.SIGSTOP - 1)
    return False


def reap(processes: Iterable[psutil.Process], *, exclude: Iterable[int]) -> None:
    """Reap children reparented to us, except pids in `exclude`."""
    kept = set(exclude)
    for process in processes:
        if process.pid not in kept:
            with suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)
