"""A DNS server for the declared hosts (RFC 1035, section 4, over UDP); it refuses and reports every other name."""

import asyncio
import socket
import struct
from collections.abc import Callable, Mapping
from typing import cast

from wedgehog.harness.faults.process_fault import HostHarm

PORT = 53
A = 1
LIVES_S = 60
NO_ERROR, SERVER_FAILURE, NO_SUCH_NAME = 0, 2, 3
RESPONSE, WANTS_RECURSION, CAN_RECURSE = 0x8000, 0x0100, 0x0080


_WHAT = {
    "no_such_name": "it said that there is no such name",
    "server_failure": "it said that it had failed",
    "no_answer": "it gave no answer",
    "late": "it answered after {:g} s",
}


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


def error(query: bytes, code: int) -> bytes:
    """The response to one query that has no answer. Errors: ValueError."""
    _, _, question = parsed_question(query)
    number, flags = struct.unpack_from("!HH", query)
    flags = RESPONSE | CAN_RECURSE | (flags & WANTS_RECURSION) | code
    return struct.pack("!HHHHHH", number, flags, 1, 0, 0, 0) + question


class NameServer(asyncio.DatagramProtocol):
    """Answers on a datagram socket."""

    def __init__(self, hosts: Mapping[str, str], unknown: Callable[[str], None]) -> None:
        self._hosts, self._unknown = hosts, unknown
        self.harms: dict[str, tuple[HostHarm, Callable[[str], None]]] = {}
        """How the lookup of a name is harmed, and who gets the proof."""
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for the answers."""
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Answer one query; ignore what is not a query."""
        try:
            name, _, _ = parsed_question(data)
            harm, met = self.harms.get(name, (HostHarm(), None))
            response = self._harmed(data, harm) if met is not None else answer(data, self._hosts, self._unknown)
        except ValueError:
            return
        if met is not None:
            met(f"the name server was asked for {name}: {_WHAT[harm.lookup or 'late'].format(harm.late_s)}")
        if response is not None and harm.late_s:
            asyncio.get_running_loop().call_later(harm.late_s, self._send, response, addr)
        elif response is not None:
            self._send(response, addr)

    def _harmed(self, query: bytes, harm: HostHarm) -> bytes | None:
        """The response to a query under a fault; None: there is none."""
        if harm.lookup == "no_answer":
            return None
        codes = {"no_such_name": NO_SUCH_NAME, "server_failure": SERVER_FAILURE}
        code = codes.get(harm.lookup or "")
        return answer(query, self._hosts, self._unknown) if code is None else error(query, code)

    def _send(self, response: bytes, addr: tuple[str, int]) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(response, addr)
