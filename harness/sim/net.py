"""The addresses of the simulated world: names, listeners, ports."""

import errno
import ipaddress
import itertools
import os
import socket
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from wedgehog.harness.network.base import Address
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.sim.errors import LIVE

if TYPE_CHECKING:
    from wedgehog.harness.sim.byte_stream import ByteStreamEnd
    from wedgehog.harness.sim.server import SimServer

LATENCY_S = 50e-6
"""From one end of a connection to the other; a loopback takes about as long."""
FIRST_LISTENING, FIRST_CONNECTING = 20_000, 40_000
ANY = "0.0.0.0"  # noqa: S104  no real socket listens there

TcpObserver = Callable[[float, str, "bytes | ByteStreamEnd"], None]
"""Gets the time, the sending end's label and what it sends."""


class Net:
    """Every name and every listener; the simulated world has no others."""

    def __init__(self, latency_s: float = LATENCY_S, names: Mapping[str, str] | None = None) -> None:
        """`names` are hosts beside `localhost`, with their IPv4 addresses."""
        self.latency_s = latency_s
        self.names = {"localhost": HOST, **(names or {})}
        self.listeners: dict[Address, SimServer] = {}
        self.observe: TcpObserver | None = None
        self.refused: dict[str, None] = {}
        """The names and addresses outside of this world that were asked for, in order."""
        self._listening, self._connecting = itertools.count(FIRST_LISTENING), itertools.count(FIRST_CONNECTING)
        self._connections = itertools.count(1)

    def resolve(self, host: str | bytes | None) -> str:
        """The address of a host. Raises socket.gaierror for one that is outside of this world."""
        name = host.decode() if isinstance(host, bytes) else host or HOST
        if name in self.names:
            return self.names[name]
        if name == HOST or _is_ipv4(name):
            return name
        self.refused[name] = None
        raise socket.gaierror(socket.EAI_NONAME, f"{name} is not in the simulated network: {LIVE}")

    def listener(self, address: Address) -> "SimServer":
        """The listener at an address. Raises ConnectionRefusedError, or OSError for a host outside of this world."""
        found = self.listeners.get(address) or self.listeners.get((ANY, address[1]))
        if found is not None:
            return found
        if address[0] not in self.names.values():
            self.refused[address[0]] = None
            raise OSError(errno.ENETUNREACH, f"{address[0]} is not in the simulated network: {LIVE}")
        raise ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed {address}")

    def bound(self, host: str | None, port: int | None) -> Address:
        """The address of a new listener; without a port it gets a free one."""
        return (ANY if host in (None, "", ANY) else self.resolve(host), port or self.free_port())

    def free_port(self) -> int:
        """A port at which nothing listens yet."""
        return next(self._listening)

    def listen(self, server: "SimServer") -> None:
        """Add a listener."""
        if self.listeners.get(server.address, server) is not server:
            host, port = server.address
            message = f"error while attempting to bind on address {(host, port)}: {_in_use()}"
            raise OSError(errno.EADDRINUSE, message)
        self.listeners[server.address] = server

    def connecting(self) -> tuple[int, Address]:
        """The number of a new connection, and the client's address."""
        return next(self._connections), (HOST, next(self._connecting))


def _is_ipv4(name: str) -> bool:
    try:
        ipaddress.IPv4Address(name)
    except ValueError:
        return False
    return True


def _in_use() -> str:
    """The words of asyncio's error, which has the number too since Python 3.13."""
    words = os.strerror(errno.EADDRINUSE)
    return (str(OSError(errno.EADDRINUSE, words)) if sys.version_info >= (3, 13) else words).lower()
