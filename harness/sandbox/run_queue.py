"""How long runnable threads wait for a processor (Linux `schedstat`); look often, as an ended thread's wait is lost."""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from wedgehog.harness.sandbox.cleanup import FORKS, lies_below, mark_in

PROC = Path("/proc")
NANOSECONDS = 1e9


def held_up_s(waits: Sequence[float], elapsed_s: float) -> float:
    """The longest time that work shared by these threads can have been delayed between two looks.

    One thread has the work at any time. So the delay is at most the sum of all waits, and at most the time between the
    looks. A single longer wait began before the last look, because the kernel counts a wait when it ends.

    >>> held_up_s([0.02, 0.02], elapsed_s=0.05), held_up_s([0.04, 0.04], elapsed_s=0.05), held_up_s([0.3], 0.05)
    (0.04, 0.05, 0.3)
    """
    return max(min(elapsed_s, sum(waits)), max(waits, default=0.0))


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class RunQueue:
    """Finds all processes below us with a mark below `mark`, and their descendants."""

    def __init__(self, mark: str, proc: Path = PROC) -> None:
        """`proc` is the /proc file system to read."""
        self._mark, self._proc = mark, proc
        self._ours: dict[int, str] = {}
        self._before: dict[tuple[int, int], float] = {}
        self._own_before_s = self._own_s()

    @property
    def counts(self) -> bool:
        """Whether this system counts the waits of threads and lists the children of processes."""
        with suppress(OSError):
            own = self._proc / f"{os.getpid()}/task/{os.getpid()}"
            # (Without the kernel option, schedstat exists but contains zeros; our own run time is never zero.)
            return (own / "schedstat").read_bytes().split()[:1] not in ([], [b"0"]) and (own / "children").exists()
        return False

    def look(self) -> dict[str, list[float]]:
        """By mark, how long each thread has waited since the last look."""
        self._find()
        now = {(pid, tid): wait_s for pid in self._ours for tid, wait_s in self._threads(pid)}
        found: dict[str, list[float]] = {}
        for (pid, tid), wait_s in now.items():
            found.setdefault(self._ours[pid], []).append(_more_s(self._before.get((pid, tid)), wait_s))
        living = {pid for pid, _ in now}
        self._ours = {pid: mark for pid, mark in self._ours.items() if pid in living}
        self._before = now
        return found

    def own_wait_s(self) -> float:
        """How long our own main thread has waited since the last call; it runs the event loop."""
        before_s, self._own_before_s = self._own_before_s, self._own_s()
        return self._own_before_s - before_s

    def _own_s(self) -> float:
        return dict(self._threads(os.getpid())).get(os.getpid(), 0.0)

    def pressure_s(self) -> float | None:
        """For how long, since the system started, any thread of the machine waited for a processor (Linux's PSI)."""
        with suppress(OSError, ValueError, IndexError):
            some = (self._proc / "pressure/cpu").read_text(encoding="utf-8").splitlines()[0]
            return int(some.rpartition("total=")[2]) / 1e6
        return None

    def _find(self) -> None:
        """Add new processes, by their mark or else their parent's; listing all takes too long on a big machine."""
        parents = [os.getpid(), *self._ours]
        while parents:
            parent = parents.pop()
            for pid in self._children(parent):
                mark = self._mark_of(pid) or self._ours.get(parent, "") if pid not in self._ours else ""
                if lies_below(mark, self._mark) and mark != f"{self._mark}/{FORKS}":
                    self._ours[pid] = mark
                    parents.append(pid)

    def _mark_of(self, pid: int) -> str:
        return mark_in(self._read(pid, "environ", 1 << 20)) or ""

    def _children(self, pid: int) -> Iterator[int]:
        for tid in self._tids(pid):
            yield from map(int, self._read(pid, f"task/{tid}/children").split())

    def _threads(self, pid: int) -> Iterator[tuple[int, float]]:
        for tid in self._tids(pid):
            counts = self._read(pid, f"task/{tid}/schedstat").split()
            if len(counts) > 1:
                yield tid, int(counts[1]) / NANOSECONDS

    def _tids(self, pid: int) -> list[int]:
        with suppress(OSError):
            return [int(entry.name) for entry in os.scandir(f"{self._proc}/{pid}/task")]
        return []

    def _read(self, pid: int, name: str, most: int = 1 << 14) -> bytes:
        """The file's content; empty if the process has ended or belongs to another user. (pathlib is slower.)"""
        with suppress(OSError):
            file = os.open(f"{self._proc}/{pid}/{name}", os.O_RDONLY)
            try:
                return os.read(file, most)
            finally:
                os.close(file)
        return b""


def _more_s(before_s: float | None, now_s: float) -> float:
    """The increase; a number below the earlier one belongs to a new thread with the same id."""
    return now_s - before_s if before_s is not None and before_s <= now_s else now_s
