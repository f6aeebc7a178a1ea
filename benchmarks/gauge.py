"""What a process has used: CPU to the nanosecond where Linux tells, and memory."""

from __future__ import annotations

from pathlib import Path

import psutil


def cpu_ms(pid: int) -> float:
    """Return the CPU time, user's and system's, of a process and all processes that it has started."""
    root = psutil.Process(pid)
    return sum(_cpu_ms(process) for process in [root, *root.children(recursive=True)])


def _cpu_ms(process: psutil.Process) -> float:
    threads = Path(f"/proc/{process.pid}/task")
    if threads.exists():
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads.iterdir()) / 1e6
    times = process.cpu_times()
    return (times.user + times.system) * 1000


def memory_kb(pid: int) -> float:
    """Return the resident memory of a process."""
    return float(psutil.Process(pid).memory_info().rss) / 1024


def machine() -> str:
    """Name the machine's processor, cores and memory."""
    named = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    processor = named[0].split(":")[1].strip() if named else "an unnamed processor"
    return f"{processor}, {psutil.cpu_count()} cores, {round(psutil.virtual_memory().total / 2**30)} GiB"
