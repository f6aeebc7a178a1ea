"""Describe processes from outside: what runs, since when, and what it is doing."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from wedgehog.harness.sandbox.cleanup import carrying

WORD_CHARS = 300
"""Longer words of a command line are cut: one of them may be an agent's prompt."""


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """One process at one moment."""

    pid: int
    parent: int
    argv: tuple[str, ...]
    executable: str
    state: str
    """psutil's word: sleeping, running, disk-sleep, stopped, zombie …"""
    waits_in: str
    """The kernel function in which it sleeps (Linux); empty if it cannot be read."""
    cpu_s: float
    age_s: float
    threads: int
    cwd: str = ""

    @property
    def is_python(self) -> bool:
        """Whether it is a Python interpreter."""
        return Path(self.executable).name.lower().startswith(("python", "pypy"))


def tree_of(mark: str, leaders: Iterable[int]) -> list[psutil.Process]:
    """The leaders, their descendants, and every process with the mark; the leaders come first."""
    found: dict[int, psutil.Process] = {}
    for pid in leaders:
        with suppress(psutil.Error):
            leader = psutil.Process(pid)
            found |= {process.pid: process for process in (leader, *leader.children(recursive=True))}
    found |= {process.pid: process for process in carrying(mark) if process.pid not in found}
    return list(found.values())


def process_infos(processes: Iterable[psutil.Process], now_s: float) -> list[ProcessInfo]:
    """Describe the processes that can still be read; `now_s` is the time since the epoch."""
    return list(_readable(processes, now_s))


def _readable(processes: Iterable[psutil.Process], now_s: float) -> Iterator[ProcessInfo]:
    for process in processes:
        with suppress(psutil.Error, OSError), process.oneshot():
            cpu = process.cpu_times()
            yield ProcessInfo(
                pid=process.pid,
                parent=process.ppid(),
                argv=tuple(word[:WORD_CHARS] for word in process.cmdline()),
                executable=_quietly(process, "exe") or process.name(),
                state=process.status(),
                waits_in=_waits_in(process.pid),
                cpu_s=round(cpu.user + cpu.system, 2),
                age_s=round(max(0.0, now_s - process.create_time()), 2),
                threads=process.num_threads(),
                cwd=_quietly(process, "cwd"),
            )


def environment(process: psutil.Process) -> Mapping[str, str]:
    """The environment that it was started with; empty if it cannot be read."""
    with suppress(psutil.Error, OSError):
        return process.environ()
    return {}


def _quietly(process: psutil.Process, what: str) -> str:
    with suppress(psutil.Error, OSError):
        return str(getattr(process, what)())
    return ""


def _waits_in(pid: int) -> str:
    with suppress(OSError):
        found = Path(f"/proc/{pid}/wchan").read_text(encoding="utf-8")
        return "" if found == "0" else found
    return ""
