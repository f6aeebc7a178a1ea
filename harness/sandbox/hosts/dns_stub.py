"""A DNS server for the declared hosts (RFC 1035, section 4, over UDP); it refuses and reports every other name."""

import asyncio
import socket
import struct
from collections.abc import Callable, Mapping
from typing import cast

PORT = 53
A = 1
LIVES_S = 60
NO_ERROR, NO_SUCH_NAME = 0, 3
RESPONSE, WANTS_RECURSION, CAN_RECURSE = 0x8000, 0x0100, 0x0080


def parsed_question(query: bytes) -> tuple[str, int, bytes]:
    """The name, the record type and the question's own bytes. Errors: ValueError."""
    labels, at = [], 12
    try:
        while size := query[at]:
            if size > 63:
                raise ValueError("a compressed name in a question")
            labels.append(query[at + 1 : at + 1 + size].decode("ascii"))
            at += 1 + size
        (kind,) = struct.unpack_from("!H", query, at + 1)
    except (IndexError, struct.error):
        raise ValueError("a question that ends too early") from None
    return ".".join(labels).lower(), kind, query[12 : at + 5]


def answer(query: bytes, hosts: Mapping[str, str], unknown: Callable[[str], None]) -> bytes:
    """The response to one query; calls `unknown` with a name that is not in `hosts`. Errors: ValueError."""
    name, kind, question = parsed_question(query)
    number, flags = struct.unpack_from("!HH", query)
    known = name in hosts
    if not known:
        unknown(name)
    records = b""
    if known and kind == A:
        # 0xC00C points to the name at byte 12, in the question.
        records = struct.pack("!HHHIH4s", 0xC00C, A, 1, LIVES_S, 4, socket.inet_aton(hosts[name]))
    flags = RESPONSE | CAN_RECURSE | (flags & WANTS_RECURSION) | (NO_ERROR if known else NO_SUCH_NAME)
    return struct.pack("!HHHHHH", number, flags, 1, bool(records), 0, 0) + question + records


class NameServer(asyncio.DatagramProtocol):
    """Answers on a datagram socket."""

    def __init__(self, hosts: Mapping[str, str], unknown: Callable[[str], None]) -> None:
        """`hosts`: the address of each name."""
        self._hosts, self._unknown = hosts, unknown
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for the answers."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer one query; ignore what is not a query."""
        try:
            response = answer(data, self._hosts, self._unknown)
        except ValueError:
            return
        if self._transport is not None:
            self._transport.sendto(response, addr)
