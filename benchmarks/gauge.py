"""A process's CPU time (on Linux to the nanosecond) and memory, and the documents that take the results."""

from __future__ import annotations

from pathlib import Path

import psutil


def cpu_ms(pid: int) -> float:
    """Return the CPU time, user and system, of a process and all its children."""
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


def write(document: Path, mark: str, result: str) -> None:
    """Put a result between the marks of a document; raise SystemExit if it has no such marks."""
    start, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
    head, found, tail = document.read_text(encoding="utf-8").partition(start)
    if not found:
        raise SystemExit(f"{document} has no {start.strip()}")
    document.write_text(f"{head}{start}{result}{end}{tail.partition(end)[2]}", encoding="utf-8")
