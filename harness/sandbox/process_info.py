"""Describe processes from outside: what runs, since when, what it is doing, and its TCP connections."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from wedgehog.harness.network.base import Address
from wedgehog.harness.network.tcp_diag import TcpDiag
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
    found: list[ProcessInfo] = []
    for process in processes:
        with suppress(psutil.Error, OSError), process.oneshot():
            cpu = process.cpu_times()
            found.append(
                ProcessInfo(
                    pid=process.pid,
                    parent=process.ppid(),
                    argv=shown_words(process.cmdline()),
                    executable=_quietly(process, "exe") or process.name(),
                    state=process.status(),
                    waits_in=_waits_in(process.pid),
                    cpu_s=round(cpu.user + cpu.system, 2),
                    age_s=round(max(0.0, now_s - process.create_time()), 2),
                    threads=process.num_threads(),
                    cwd=_quietly(process, "cwd"),
                )
            )
    return found


def shown_words(argv: Iterable[str]) -> tuple[str, ...]:
    """The words of a command line, each cut. A process that gave itself a title leaves empty words behind it."""
    words = [word[:WORD_CHARS] for word in argv]
    while words and not words[-1]:
        words.pop()
    return tuple(words)


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


# ---- connections

GONE = ("LISTEN", "TIME_WAIT", "CLOSE", "NONE")
Counts = Mapping[tuple[Address, Address], tuple[int, int, int]]


@dataclass(frozen=True, slots=True)
class Peer:
    """One connection of one process."""

    pid: int
    link: str
    """The link's name; `channel` for a connection that the process accepted; empty for any other."""
    local: str
    remote: str
    state: str
    sent: int | None = None
    """Bytes as counted by the kernel, if available."""
    received: int | None = None
    unread: int | None = None
    """Bytes that have arrived and that the process has not read."""

    @property
    def name(self) -> str:
        """The link, or the address."""
        return self.link or self.remote


def peers_of(
    processes: Iterable[psutil.Process], links: Mapping[str, Address], hosts: Mapping[Address, str] | None = None
) -> list[Peer]:
    """Connections of these processes that are open on a side; `hosts`: links by the addresses of a private network."""
    by_address = {address: name for name, address in links.items()} | dict(hosts or {})
    counts: Counts = {}
    if view := TcpDiag.open():
        with closing(view), suppress(OSError):
            counts = {(it.local, it.remote): (it.sent, it.received, it.unread) for it in view.sockets()}
    return list(_peers(processes, by_address, counts))


def _peers(processes: Iterable[psutil.Process], links: Mapping[Address, str], counts: Counts) -> Iterator[Peer]:
    found = [(process.pid, conn) for process in processes for conn in _connections(process)]
    served = {conn.laddr[1] for _, conn in found if conn.status == "LISTEN"}
    for pid, conn in found:
        if not conn.raddr or conn.status in GONE:
            continue
        local, remote = _address(conn.laddr), _address(conn.raddr)
        link = links.get(remote, "channel" if local[1] in served else "")
        yield Peer(pid, link, _text(local), _text(remote), conn.status, *counts.get((local, remote), ()))


def _connections(process: psutil.Process) -> list[Any]:
    with suppress(psutil.Error, OSError):
        return list(process.net_connections(kind="tcp"))
    return []


def _address(found: tuple[str, int]) -> Address:
    host, port = found[0], found[1]
    return host.removeprefix("::ffff:"), port


def _text(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
