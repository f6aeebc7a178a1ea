"""One blow at several processes: a signal to each, with the proof that it was delivered and, for SIGKILL, of the end.

hit = deliver(lambda: tree(leader), signal.SIGKILL)          # those that lived when it reached them
left = await gone(hit, clock.sleep, within_s=5)
"""

import os
import signal
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress

import psutil

from wedgehog.harness.sandbox.cleanup import alive

LOOK_EVERY_S = 0.005


def tree(leader: int) -> Iterator[psutil.Process]:
    """The process `leader`, and only then all that live below it or in its process group; none where it has ended."""
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
    """Send `number` to each that is found; those that lived when it was sent.

    SIGKILL and SIGSTOP stand them all still first, whoever they were forking included, so that it is one blow and
    nobody sees another one end.
    """
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        return [process for process in dict.fromkeys(find()) if alive(process) and _sent(process, number)]
    still: dict[psutil.Process, None] = {}
    found = True
    while found:
        found = False
        for process in find():  # the next one is looked for when this one stands
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
    """Wait until all have ended; the pids of those that have not after `within_s`."""
    everybody, waited_s = list(processes), 0.0
    while (left := [process for process in everybody if alive(process)]) and waited_s < within_s:
        await sleep(LOOK_EVERY_S)
        waited_s += LOOK_EVERY_S
    return [process.pid for process in left]


async def stopped(
    processes: Iterable[psutil.Process], sleep: Callable[[float], Awaitable[None]], within_s: float
) -> list[int]:
    """Wait until all stand still (or have ended); the pids of those that do not after `within_s`."""
    everybody, waited_s = list(processes), 0.0
    while (left := [process for process in everybody if alive(process) and not _stands(process)]) and (
        waited_s < within_s
    ):
        await sleep(LOOK_EVERY_S)
        waited_s += LOOK_EVERY_S
    return [process.pid for process in left]


def _stands(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return bool(process.status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP))
    return True


def reap(processes: Iterable[psutil.Process], *, but: Iterable[int]) -> None:
    """Orphans among them were given to us, who are to wait for them; those in `but` somebody else waits for."""
    kept = set(but)
    for process in processes:
        if process.pid not in kept:
            with suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)
