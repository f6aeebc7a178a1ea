"""One connection through the relay: two sockets, and a `Pipe` each way.

```
 agent ◀──▶ Endpoint ══ Pipe up ══▶ Endpoint ◀──▶ upstream
                     ◀═ Pipe down ═
```
"""

import asyncio
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from wedgehog.harness.network.base import Address
from wedgehog.harness.network.pipe import Action, Close, Pipe, Send

# SO_LINGER on, for zero seconds: close() sends RST.
_RESET = struct.pack("ii", 1, 0)
# The most bytes that wait in a pipe before reading from its source pauses.
HIGH_WATER = 1 << 20


class ConnectionOwner(Protocol):
    """The owner of connections: it gives their upstream, and is called when bytes passed and when they end."""

    upstream: Address
    tells_resets: bool
    """Whether an RST on one side becomes an RST on the other; else a FIN, as through Toxiproxy."""

    def look(self, connection: "ProxiedConnection", pipe: Pipe) -> None:
        """All bytes that a pipe has let pass are handed to the kernel."""

    def ended(self, connection: "ProxiedConnection") -> None:
        """Both sockets are closed."""


class Endpoint(asyncio.Protocol):
    """One socket of a connection; it feeds `pipe`, which leads to `other`."""

    def __init__(self, connection: "ProxiedConnection", pipe: Pipe) -> None:
        self.connection = connection
        self.pipe = pipe
        self.other: Endpoint | None = None
        self.transport: asyncio.Transport | None = None
        self.ended = False
        self._alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Turn off the write buffer: with it, the count of sent bytes would be a guess."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("an endpoint needs a TCP transport")
        self.transport = transport
        transport.set_write_buffer_limits(high=0)

    def data_received(self, data: bytes) -> None:
        """Feed the pipe, and send what it lets pass."""
        self.pipe.feed(data, self.connection.now())
        self.pump()

    def eof_received(self) -> bool:
        """The peer has sent its last byte; its socket stays until the pipe is empty."""
        self.connection.ending(self)
        self.pipe.end(self.connection.now())
        self.pump()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is closed: its bytes still pass, then the other side closes."""
        self.ended = True
        self.connection.ending(self)
        reset = self.connection.owner.tells_resets and isinstance(error, ConnectionResetError)
        self.pipe.end(self.connection.now(), "rst" if reset else "fin")
        self.pump()
        self.connection.socket_lost()

    def resume_writing(self) -> None:
        """The peer reads again, or no longer: the other side does so too."""
        if self.other:
            self.other.pump()

    pause_writing = resume_writing

    @property
    def unwritten(self) -> int:
        """Bytes that the kernel has not taken yet."""
        return self.transport.get_write_buffer_size() if self.transport else 0

    def pump(self) -> None:
        """Send what the pipe lets pass now, schedule the next time, and pause reading if the pipe is full."""
        other = self.other
        if other is None or other.transport is None:
            return
        pipe, now = self.pipe, self.connection.now()
        while not (unwritten := other.unwritten) and (actions := pipe.ready(now)):
            self.act(actions)
        if not unwritten:
            self.connection.owner.look(self.connection, pipe)
        self._alarm = pump_later(self.pump, pipe, now, self._alarm)
        self._read_on(not other.unwritten and pipe.reading and pipe.waiting < HIGH_WATER)

    def act(self, actions: list[Action]) -> None:
        """Apply the pipe's actions to the other side."""
        if self.other is None:
            return
        for action in actions:
            match action:
                case Send(data):
                    self.other.write(data)
                case Close("rst"):
                    # A reset is for both sockets, as through Toxiproxy.
                    self.other.finish("rst")
                    self.finish("rst")
                case Close(how):
                    self.other.finish(how)

    def write(self, data: bytes) -> None:
        """Send bytes, unless the socket is closing."""
        if self.transport and not self.transport.is_closing():
            self.transport.write(data)

    def finish(self, how: Literal["fin", "rst"]) -> None:
        """Close this socket after the written bytes, with FIN or with RST."""
        if self.transport is not None:
            close(self.transport, how)

    def _read_on(self, wanted: bool) -> None:
        if self.transport is None or self.transport.is_closing() or self.ended:
            return
        if wanted:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()


def pump_later(
    pump: Callable[[], None], pipe: Pipe, now: float, alarm: asyncio.TimerHandle | None
) -> asyncio.TimerHandle | None:
    """Replace the alarm that pumps when the next byte is due; bytes due at `now` wait for `resume_writing`."""
    if alarm:
        alarm.cancel()
    at = pipe.next_at()
    return asyncio.get_running_loop().call_later(at - now, pump) if at and at > now else None


def close(transport: asyncio.Transport, how: Literal["fin", "rst"]) -> None:
    """Close a socket after the written bytes, with FIN or with RST."""
    if transport.is_closing():
        return
    if how == "rst":
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    transport.close()


class ProxiedConnection:
    """One connection through the relay: two endpoints and a pipe each way."""

    def __init__(self, owner: "ConnectionOwner") -> None:
        self.owner = owner
        self.up, self.down = Pipe(), Pipe()
        self.client, self.server = Endpoint(self, self.up), Endpoint(self, self.down)
        self.peer: Address | None = None
        self._ended_first: Endpoint | None = None
        self._open = 2
        self._connecting: asyncio.Task[None] | None = None

    def now(self) -> float:
        """The event loop's time in seconds."""
        return asyncio.get_running_loop().time()

    def accept(self) -> Endpoint:
        """Dial the upstream in a task; return the protocol of the agent's connection."""
        self._connecting = asyncio.get_running_loop().create_task(self._connect())
        return self.client

    async def _connect(self) -> None:
        """Dial the upstream; if it refuses, the agent gets FIN, as through Toxiproxy."""
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.create_connection(lambda: self.server, *self.owner.upstream)
        except OSError:
            self.client.finish("fin")
            self.socket_lost()
            return
        host, port = transport.get_extra_info("sockname")[:2]
        self.peer = (host, port)
        self.client.other, self.server.other = self.server, self.client
        self.client.pump()

    async def connected(self) -> None:
        """Wait until dialling the upstream has succeeded or failed."""
        if self._connecting:
            await asyncio.wait([self._connecting])

    @property
    def over(self) -> bool:
        """Whether one of its sockets is closed."""
        return self._open < 2

    @property
    def upstream_hung_up(self) -> bool:
        """Whether the upstream ended the connection, before the agent did."""
        return self._ended_first is self.server

    def ending(self, end: Endpoint) -> None:
        """Remember which side ended the connection first."""
        self._ended_first = self._ended_first or end

    def socket_lost(self) -> None:
        """Count a closed socket; the second one ends the connection."""
        self._open -= 1
        if self._open <= 0:
            self.owner.ended(self)

    def heal(self, left: Callable[[Pipe], Sequence[Callable[[Pipe], None]]]) -> None:
        """Remove the faults from both pipes, but those that `left` sets again; stalls that are over end with FIN."""
        for end in (self.client, self.server):
            end.act(end.pipe.heal(left(end.pipe)))
            end.pump()

    def abort(self) -> None:
        """Close both sides with FIN now, without unwritten bytes."""
        if self._connecting:
            self._connecting.cancel()
        for end in (self.client, self.server):
            if end.transport:
                end.transport.abort()
