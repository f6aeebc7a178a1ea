"""A listening port that can refuse connections, and listen again at the same number."""

import asyncio
import socket
from collections.abc import Callable
from typing import Protocol

from wedgehog.harness.network.base import Address, NetworkError

BACKLOG = 1024


class ListeningPort(Protocol):
    """A port of one address that can refuse connections."""

    address: Address

    async def listen(self) -> None:
        """Accept connections."""

    def refuse(self) -> None:
        """Refuse connections, and keep the number reserved."""

    async def prove_refusal(self) -> str:
        """Return the proof that a connect is refused; raise NetworkError if it is not."""

    def close(self) -> None:
        """Release the number."""


class Port:
    """One port of one address; `accept` makes the protocol of each new connection."""

    def __init__(self, name: str, address: Address, accept: Callable[[], asyncio.BaseProtocol]) -> None:
        """Start closed; `listen` opens it (port 0: a free one, then the same). `name` is for error messages."""
        self.address = address
        self._name, self._accept = name, accept
        self._server: asyncio.Server | None = None
        self._reserved: socket.socket | None = None

    async def listen(self) -> None:
        """Accept connections."""
        sock = self._reserved or _bound(self.address)
        self._reserved = None
        self.address = sock.getsockname()[:2]
        self._server = await asyncio.get_running_loop().create_server(self._accept, sock=sock, backlog=BACKLOG)

    def refuse(self) -> None:
        """Refuse connections, and keep the number reserved."""
        self._stop()
        if self._reserved is None:
            self._reserved = _bound(self.address)

    async def prove_refusal(self) -> str:
        """Return the proof that a connect is refused; raise NetworkError if it is not."""
        if not await asyncio.to_thread(refused, self.address):
            raise NetworkError(f"link {self._name}: something still answers at port {self.address[1]}")
        return f"our own connect to {self.address[0]}:{self.address[1]} was refused"

    def close(self) -> None:
        """Release the number."""
        self._stop()
        if self._reserved:
            self._reserved.close()

    def _stop(self) -> None:
        if self._server:
            self._server.close()
            self._server = None


def _bound(address: Address) -> socket.socket:
    """A socket that reserves the port without listening: connects to it are refused."""
    # With IPPROTO_TCP, because asyncio sets TCP_NODELAY only on sockets with that protocol.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


def refused(address: Address, timeout_s: float = 2.0) -> bool:
    """Whether a TCP connect is refused (blocking; call it through `asyncio.to_thread`)."""
    try:
        socket.create_connection(address, timeout=timeout_s).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False
