"""List the open TCP connections of processes, with the link that each one crosses."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any

import psutil

from wedgehog.harness.network.base import Address
from wedgehog.harness.network.tcp_diag import TcpDiag

GONE = ("LISTEN", "TIME_WAIT", "CLOSE", "NONE")


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
    """Every connection of these processes that is open on at least one side.

    `hosts`: link by address, for the addresses of an agent's private network.
    """
    by_address = {address: name for name, address in links.items()} | dict(hosts or {})
    view = TcpDiag.open()
    if view is None:
        return list(_peers(processes, by_address, {}))
    with closing(view), suppress(OSError):
        counts = {(count.local, count.remote): (count.sent, count.received, count.unread) for count in view.sockets()}
        return list(_peers(processes, by_address, counts))
    return list(_peers(processes, by_address, {}))


Counts = Mapping[tuple[Address, Address], tuple[int, int, int]]


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
