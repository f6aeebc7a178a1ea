"""The socket of a transport in memory, or of a listener: what clients ask of one, and nothing that reads or writes."""

import errno
import os
import socket
import struct
from typing import TYPE_CHECKING

from wedgehog.harness.network.base import Address
from wedgehog.harness.sim.poll_fds import POLL_FDS

if TYPE_CHECKING:
    from wedgehog.harness.sim.tcp import SimTransport

_LINGER = struct.Struct("ii")


class SimSocket:
    """What `get_extra_info("socket")` returns; only what clients ask of a connected socket."""

    family, type, proto = socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP

    def __init__(self, local: Address, remote: Address | None = None, transport: "SimTransport | None" = None) -> None:
        self._local, self._remote, self._transport = local, remote, transport
        self.lingers = True
        """False: closing it sends RST."""

    def fileno(self) -> int:
        """A descriptor that polls as this socket would: httpcore asks so whether an idle connection was closed."""
        transport = self._transport
        if transport is None or transport.is_shut:
            return -1
        return POLL_FDS.readable if transport.has_unread else POLL_FDS.silent

    def getsockname(self) -> Address:
        """The own address."""
        return self._local

    def getpeername(self) -> Address:
        """The address of the other side."""
        if self._remote is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return self._remote

    def setsockopt(self, level: int, option: int, value: int | bytes | None, length: int = 0) -> None:
        """Only SO_LINGER has an effect: on, with zero seconds, closing sends RST."""
        if (level, option) == (socket.SOL_SOCKET, socket.SO_LINGER) and isinstance(value, bytes):
            self.lingers = _LINGER.unpack(value) != (1, 0)

    def getsockopt(self, level: int, option: int, length: int = 0) -> int:
        """Every option is off."""
        return 0

    def gettimeout(self) -> float:
        """It does not block."""
        return 0.0

    def setblocking(self, flag: bool) -> None:
        """It never blocks."""

    def settimeout(self, value: float | None) -> None:
        """It never blocks."""
