"""A listening port that can refuse connections, and listen again at the same number."""

import asyncio
import socket
from collections.abc import Callable
from typing import Self

from wedgehog.harness.network.base import Address, NetworkError, Proof

BACKLOG = 1024


class Port:
    """One port of one address; `accept` makes the protocol of each new connection."""

    def __init__(self, name: str, address: Address, accept: Callable[[], asyncio.BaseProtocol]) -> None:
        """Start closed; `listen` opens it (port 0: a free one, then the same). `name` is for error messages."""
        self.name, self.address, self._accept = name, address, accept
        self._server: asyncio.Server | None = None
        self._reserved: socket.socket | None = None

    async def listen(self) -> Self:
        """Accept connections, or raise OSError."""
        sock = self._reserved or _bound(self.address)
        self._reserved = None
        self.address = sock.getsockname()[:2]
        self._server = await asyncio.get_running_loop().create_server(self._accept, sock=sock, backlog=BACKLOG)
        return self

    def refuse(self) -> None:
        """Refuse connections, and keep the number reserved."""
        if self._reserved is None:
            self.release()
            self._reserved = _bound(self.address)

    async def prove_refusal(self) -> Proof:
        """Return the proof that a connect is refused; raise NetworkError if it is not."""
        return await prove_refusal(self.name, self.address)

    def release(self) -> None:
        """Close it."""
        for listening in (self._server, self._reserved):
            if listening:
                listening.close()
        self._server = self._reserved = None


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


async def prove_refusal(name: str, address: Address) -> Proof:
    """Return the proof that a connect is refused; raise NetworkError if it is not."""
    if not await asyncio.to_thread(_refused, address):
        raise NetworkError(f"link {name}: something still answers at port {address[1]}")
    return Proof(None, f"our own connect to {address[0]}:{address[1]} was refused")


def _refused(address: Address) -> bool:
    try:
        socket.create_connection(address, timeout=2.0).close()
    except OSError as error:
        return isinstance(error, ConnectionRefusedError)
    return False
