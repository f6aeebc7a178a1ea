"""The kernel's byte counts of each TCP socket of this machine, read through netlink (Linux, no root).

Sockets of other processes are included: this shows how many bytes a proxy has sent to an agent.
Formats: linux/inet_diag.h, linux/tcp.h (struct tcp_info, with `bytes_sent` since Linux 4.19).
"""

import contextlib
import socket
import struct
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Self

from wedgehog.harness.network.base import Address

SOCK_DIAG, BY_FAMILY, DUMP, DONE, ERROR = 4, 20, 0x301, 3, 2
BOTH_FAMILIES = 18  # the older request (TCPDIAG_GETSOCK): one list of IPv4 and IPv6
INFO, INFO_REQUESTED = 2, 1 << 1
ESTABLISHED, SYN_SENT, FIN_WAIT_1, FIN_WAIT_2, CLOSE_WAIT = 1, 2, 4, 5, 8
WITH_COUNTS = 0xFFF & ~(1 << 6) & ~(1 << 10)  # every state but TIME_WAIT and LISTEN
HEADER, ATTRIBUTE = struct.Struct("=IHHII"), struct.Struct("=HH")
REQUEST, OF_BOTH_FAMILIES = struct.Struct("=BBBxI48x"), struct.Struct("=52xI4x")
FILTER, LOCAL, REMOTE, JUMP = 1, (2, 3), (4, 5), 1
CODE = struct.Struct("=BBH")
ENDPOINTS = struct.Struct("!HH4s12x4s12x")
BYTES_RECEIVED, NOT_SENT, BYTES_SENT, INFO_SIZE = 128, 144, 200, 216


@dataclass(frozen=True, slots=True)
class SocketCount:
    """One socket: data bytes sent (without retransmits) and received (a FIN counts as one), and its queue lengths."""

    local: Address
    remote: Address
    state: int
    cookie: int
    sent: int
    received: int
    unsent: int
    unacked: int
    unread: int

    @property
    def open(self) -> bool:
        """Whether this side can still send."""
        return self.state in (ESTABLISHED, CLOSE_WAIT)

    @property
    def closed_first(self) -> bool:
        """Whether this side sent its FIN first."""
        return self.state in (FIN_WAIT_1, FIN_WAIT_2)


class TcpDiag:
    """A view of this machine's TCP sockets over IPv4."""

    def __init__(self) -> None:
        """Raises OSError where the kernel has no sock_diag."""
        self._netlink = socket.socket(getattr(socket, "AF_NETLINK", -1), socket.SOCK_RAW, SOCK_DIAG)
        self._netlink.settimeout(2)

    @classmethod
    def open(cls) -> Self | None:
        """Open a view; None where the kernel allows none (another system, a sandbox)."""
        if not sys.platform.startswith("linux"):
            return None
        with contextlib.suppress(OSError, struct.error):
            view = cls()
            view.sockets([1])
            return view
        return None

    def sockets(self, local_ports: Collection[int] = (), remote_ports: Collection[int] = ()) -> list[SocketCount]:
        """Return the sockets with one of these local or one of these remote ports; without any, all sockets."""
        request = REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, INFO_REQUESTED, WITH_COUNTS)
        ports = [*((LOCAL, port) for port in local_ports), *((REMOTE, port) for port in remote_ports)]
        if code := _any_of(ports):
            request += ATTRIBUTE.pack(ATTRIBUTE.size + len(code), FILTER) + code
        return list(filter(None, map(_count, self._dumped(BY_FAMILY, request))))

    def elsewhere(self) -> dict[int, str]:
        """By inode, the address of each socket, IPv4 or IPv6, whose other end is not this machine's loopback."""
        found: dict[int, str] = {}
        for message in self._dumped(BOTH_FAMILIES, OF_BOTH_FAMILIES.pack(WITH_COUNTS)):
            address, (port,) = _remote(message), struct.unpack_from("!H", message, 6)
            if not address.is_loopback and not address.is_unspecified:
                host = f"[{address}]" if address.version == 6 else str(address)
                found[struct.unpack_from("=I", message, 68)[0]] = f"{host}:{port}"
        return found

    def _dumped(self, kind_of_request: int, request: bytes) -> Iterator[bytes]:
        """The kernel's messages, one for each socket.

        The kernel walks its whole table of sockets for each request, which takes 3 ms where the table is large.
        """
        self._netlink.send(HEADER.pack(HEADER.size + len(request), kind_of_request, DUMP, 1, 0) + request)
        while True:
            for kind, payload in _records(self._netlink.recv(1 << 18), HEADER):
                if kind == ERROR:
                    raise OSError("netlink refused the request")
                if kind == DONE:
                    return
                yield payload

    def close(self) -> None:
        """Close the netlink socket."""
        self._netlink.close()


def _any_of(ports: Sequence[tuple[tuple[int, int], int]]) -> bytes:
    """The filter's code: for each port, is it at least that, is it at most that, then jump to the end.

    A jump to 4 bytes behind the end refuses the socket. Each port takes 20 bytes.
    """
    code = b""
    for left, (compare, port) in zip(range(len(ports) - 1, -1, -1), ports, strict=True):
        otherwise = 20 if left else 24  # the next port
        for size, comparison in zip((0, 8), compare, strict=True):
            code += CODE.pack(comparison, 8, otherwise - size) + CODE.pack(0, 0, port)
        code += CODE.pack(JUMP, 4, 4 + 20 * left)
    return code


def _records(data: bytes, header: struct.Struct) -> Iterator[tuple[int, bytes]]:
    """Yield kind and payload of each record; its header begins with its size and kind, its end is padded."""
    at = 0
    while at + header.size <= len(data):
        size, kind, *_ = header.unpack_from(data, at)
        if size < header.size:
            return
        yield kind, data[at + header.size : at + size]
        at += (size + 3) & ~3


def _remote(message: bytes) -> IPv4Address | IPv6Address:
    if message[0] == socket.AF_INET:
        return IPv4Address(message[24:28])
    address = IPv6Address(message[24:40])
    return address.ipv4_mapped or address


def _count(message: bytes) -> SocketCount | None:
    info = dict(_records(message[72:], ATTRIBUTE)).get(INFO)
    if message[0] != socket.AF_INET or info is None or len(info) < INFO_SIZE:
        return None
    local_port, remote_port, local, remote = ENDPOINTS.unpack_from(message, 4)
    (cookie,) = struct.unpack_from("=Q", message, 44)
    _, unread, unacked = struct.unpack_from("=III", message, 52)
    (received,) = struct.unpack_from("=Q", info, BYTES_RECEIVED)
    (unsent,) = struct.unpack_from("=I", info, NOT_SENT)
    sent, repeated = struct.unpack_from("=QQ", info, BYTES_SENT)
    ends = (socket.inet_ntoa(local), local_port), (socket.inet_ntoa(remote), remote_port)
    return SocketCount(*ends, message[1], cookie, sent - repeated, received, unsent, unacked, unread)
