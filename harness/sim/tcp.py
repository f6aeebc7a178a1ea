"""The transports of a TCP connection in memory: what asyncio's own transports do on a real socket.

The order of calls is that of `asyncio.selector_events`: a read is at most one call of `data_received` for each turn of
the loop, `connection_lost` comes in the turn after `close`, and the FIN goes out behind it.
"""

import asyncio
from asyncio import transports
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from wedgehog.harness.network.base import Address
from wedgehog.harness.sim.byte_stream import ByteStream
from wedgehog.harness.sim.server import SimServer
from wedgehog.harness.sim.sim_socket import SimSocket

if TYPE_CHECKING:
    from wedgehog.harness.sim.loop import SimLoop

READ_BYTES = 1 << 18
"""The most bytes of one read; asyncio's own limit."""


class SimTransport(transports._FlowControlMixin, asyncio.Transport):
    """One end of a connection. In the trace `3>` is the client's end of connection 3, `3<` the server's."""

    _start_tls_compatible = True
    _loop: "SimLoop"
    _maybe_pause_protocol: Callable[[], None]
    _maybe_resume_protocol: Callable[[], None]

    def __init__(self, loop: "SimLoop", label: str, local: Address, remote: Address, server: SimServer | None) -> None:
        """Not connected: `connect` makes its streams."""
        self.socket = SimSocket(local, remote, self)
        super().__init__({"socket": self.socket, "sockname": local, "peername": remote}, loop)
        self.label = label
        self.is_shut = False
        """Whether the socket is closed."""
        self._server = server
        self._protocol: asyncio.BaseProtocol
        self._buffer: deque[bytes] = deque()
        self._eof = self._paused = self._closing = self._reads = self._read_is_due = False
        self._conn_lost = 0
        self.context = copy_context() if server is None else server.context.copy()
        """In which its protocol is called: that of the code that connected, or that listens, never the other end's."""

    def connect(self, outgoing: ByteStream, incoming: ByteStream) -> None:
        """Set the streams to and from the other end."""
        self._outgoing, self._incoming = outgoing, incoming

    def start(self, protocol: asyncio.BaseProtocol) -> None:
        """Call `connection_made`, then read."""
        if self._server is not None:
            self._server.attach(self)
        self.set_protocol(protocol)
        self._loop.call_soon(protocol.connection_made, self, context=self.context)
        self._loop.call_soon(self._begin_to_read, context=self.context)

    # ---- the state

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Replace the protocol."""
        self._protocol = protocol
        self._fills_buffers = isinstance(protocol, asyncio.BufferedProtocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Return the protocol."""
        return self._protocol

    def is_closing(self) -> bool:
        """Whether it is closed or about to be."""
        return self._closing

    def is_reading(self) -> bool:
        """Whether the protocol gets bytes."""
        return not self._closing and not self._paused

    def can_write_eof(self) -> bool:
        """TCP has half-closed connections."""
        return True

    def get_write_buffer_size(self) -> int:
        """Bytes that the kernel has not taken."""
        return sum(map(len, self._buffer)) if self._buffer else 0

    @property
    def has_unread(self) -> bool:
        """Whether a read would return at once."""
        return bool(self._incoming.unread or self._incoming.ended)

    @property
    def waits_for_room(self) -> bool:
        """Whether it has bytes that the kernel has not taken."""
        return bool(self._buffer)

    # ---- writing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Give bytes to the kernel; what it does not take is written later."""
        if self._eof:
            raise RuntimeError("Cannot call write() after write_eof()")
        if not data or self._refuses():
            return
        data = bytes(data)
        if not self._buffer and len(data) <= self._outgoing.room:
            self._outgoing.send(data)
            return
        self._buffer.append(data)
        if len(self._buffer) == 1:
            self._push()
        if self._buffer:
            self._maybe_pause_protocol()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Write all in one piece."""
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        """Send FIN after the written bytes; the other side may still write."""
        if self._closing or self._eof:
            return
        self._eof = True
        if not self._buffer and not self._conn_lost:
            self._outgoing.send("fin")

    def flush(self) -> None:
        """The kernel has room again."""
        if self._conn_lost or not self._buffer:
            return
        if self._incoming.broken:
            self._force_close(self._incoming.broken)
            return
        self._push()
        self._maybe_resume_protocol()
        if self._buffer:
            return
        if self._closing:
            self._conn_lost += 1
            self._call_connection_lost(None)
        elif self._eof:
            self._outgoing.send("fin")

    def _refuses(self) -> bool:
        """Whether a write fails now."""
        if self._incoming.broken:
            self._force_close(self._incoming.broken)
        return bool(self._conn_lost)

    def _push(self) -> None:
        while self._buffer and (room := self._outgoing.room):
            part = self._buffer.popleft()
            if len(part) > room:
                self._buffer.appendleft(part[room:])
                part = part[:room]
            self._outgoing.send(part)

    # ---- reading

    def pause_reading(self) -> None:
        """Leave what comes to the kernel."""
        if self.is_reading():
            self._paused = True

    def resume_reading(self) -> None:
        """Read again."""
        if not self._closing and self._paused:
            self._paused = False
            self._read_soon()

    def arrived(self) -> None:
        """Bytes or an end came from the other side."""
        if self.is_shut:
            return
        if self._buffer and self._incoming.broken:
            self.flush()
        elif self._reads and not (self._closing or self._paused or self._read_is_due):
            self._read()

    def _begin_to_read(self) -> None:
        self._reads = True
        self._read_soon()

    def _read_soon(self) -> None:
        if self._reads and not self._read_is_due and self.has_unread:
            self._read_is_due = True
            self._loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        self._read_is_due = False
        if self.is_reading() and self._reads:
            self._read()

    def _read(self) -> None:
        incoming = self._incoming
        if incoming.unread:
            self._deliver()
            if incoming.unread or incoming.ended:
                self._read_soon()
        elif incoming.ended == "rst":
            self._force_close(incoming.broken)
        elif incoming.ended == "fin":
            self._reads = False
            self._end_of_file()

    def _deliver(self) -> None:
        """One read, as the protocol wants it."""
        protocol: Any = self._protocol
        try:
            if self._fills_buffers:
                buffer = memoryview(protocol.get_buffer(-1))
                data = self._incoming.read(len(buffer))
                buffer[: len(data)] = data
                protocol.buffer_updated(len(data))
            else:
                protocol.data_received(self._incoming.read(READ_BYTES))
        except Exception as bug:
            self._fail(bug, "Fatal error: protocol.data_received() call failed.")

    def _end_of_file(self) -> None:
        protocol = self._protocol
        keeps_open: bool | None = False
        try:
            if isinstance(protocol, asyncio.Protocol | asyncio.BufferedProtocol):
                keeps_open = protocol.eof_received()
        except Exception as bug:
            self._fail(bug, "Fatal error: protocol.eof_received() call failed.")
            return
        if not keeps_open:
            self.close()

    # ---- closing

    def close(self) -> None:
        """Close after the written bytes."""
        if self._closing:
            return
        self._closing = True
        if not self._buffer:
            self._conn_lost += 1
            self._loop.call_soon(self._call_connection_lost, None)

    def abort(self) -> None:
        """Close now, without the bytes that the kernel has not taken."""
        self._force_close(None)

    def reset_peer(self) -> None:
        """Answer with RST, as a closed socket does."""
        self._outgoing.send("rst")

    def _fail(self, bug: Exception, message: str) -> None:
        self._loop.call_exception_handler(
            {"message": message, "exception": bug, "transport": self, "protocol": self._protocol}
        )
        self._force_close(bug)

    def _force_close(self, error: Exception | None) -> None:
        if self._conn_lost:
            return
        self._buffer.clear()
        self._closing = True
        self._conn_lost += 1
        self._loop.call_soon(self._call_connection_lost, error)

    def _call_connection_lost(self, error: Exception | None) -> None:
        try:
            self._protocol.connection_lost(error)
        finally:
            self._shut()
            if self._server is not None:
                self._server.detach(self)

    def _shut(self) -> None:
        """Close the socket: with FIN, or with RST if bytes are unread or it does not linger."""
        if self.is_shut:
            return
        self.is_shut = True
        if self._incoming.broken:
            return
        if self._incoming.unread or not self.socket.lingers:
            self._outgoing.send("rst")
        elif not self._eof:
            self._outgoing.send("fin")
