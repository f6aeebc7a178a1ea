"""One connection through the relay: two sockets, and a `Pipe` each way.

```
 agent ◀──▶ Leg ══ Pipe up ══▶ Leg ◀──▶ upstream
                ◀═ Pipe down ═
```
"""

import asyncio
import socket
import struct
from typing import Literal, Protocol

from wedgehog.harness.network.base import Address
from wedgehog.harness.network.pipe import Action, Close, Pipe, Send

# SO_LINGER on, for zero seconds: close() sends RST.
RESET = struct.pack("ii", 1, 0)
# Bytes that may wait in a pipe, for a pace or a delay, before its source is no longer read.
HIGH_WATER = 1 << 20


class ConnectionOwner(Protocol):
    """Who runs passages: it says where they lead, and hears what has passed and that they are over."""

    upstream: Address
    tells_resets: bool
    """Whether an RST on one side is one on the other; else it is a FIN there, as through Toxiproxy."""

    def look(self, passage: "ProxiedConnection", pipe: Pipe) -> None:
        """All that a pipe has let pass has been handed to the kernel."""

    def ended(self, passage: "ProxiedConnection") -> None:
        """Both sockets are gone."""


class Endpoint(asyncio.Protocol):
    """One socket of a passage; what it reads goes into `pipe`, whose far end is `other`."""

    def __init__(self, passage: "ProxiedConnection", pipe: Pipe) -> None:
        """A leg without a socket yet."""
        self.passage = passage
        self.pipe = pipe
        self.other: Endpoint | None = None
        self.transport: asyncio.Transport | None = None
        self.ended = False
        self._alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Write through at once: a buffer of our own would make the count of sent bytes a guess."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("a leg is a TCP transport")
        self.transport = transport
        transport.set_write_buffer_limits(high=0)

    def data_received(self, data: bytes) -> None:
        """Take what came, and send what may go."""
        self.pipe.feed(data, self.passage.now())
        self.pump()

    def eof_received(self) -> bool:
        """The peer has sent its last byte; its socket stays until the pipe is empty."""
        self.pipe.end(self.passage.now())
        self.pump()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone: what it sent still passes, then the other side closes."""
        self.ended = True
        reset = self.passage.owner.tells_resets and isinstance(error, ConnectionResetError)
        self.pipe.end(self.passage.now(), "rst" if reset else "fin")
        self.pump()
        self.passage.leg_lost()

    def pause_writing(self) -> None:
        """The peer doesn't read: stop reading for it."""
        if self.other:
            self.other.pump()

    def resume_writing(self) -> None:
        """The peer reads again."""
        if self.other:
            self.other.pump()

    @property
    def unwritten(self) -> int:
        """Bytes that the kernel has not taken yet."""
        return self.transport.get_write_buffer_size() if self.transport else 0

    def pump(self) -> None:
        """Send what the pipe lets pass now, ask again when it says, and read only as long as it makes sense."""
        other = self.other
        if other is None or other.transport is None:
            return
        now = self.passage.now()
        while not other.unwritten and (actions := self.pipe.ready(now)):
            self.act(actions)
        if not other.unwritten:
            self.passage.settled(self.pipe)
        self._ask_again(now)
        self._read_on(not other.unwritten and self.pipe.reading and self.pipe.waiting < HIGH_WATER)

    def act(self, actions: list[Action]) -> None:
        """Do to the other side what its pipe says."""
        if self.other is None:
            return
        for action in actions:
            match action:
                case Send(data):
                    self.other.write(data)
                case Close("rst"):
                    # Reset is a matter of both sockets, as it is through Toxiproxy.
                    self.other.finish("rst")
                    self.finish("rst")
                case Close(how):
                    self.other.finish(how)

    def write(self, data: bytes) -> None:
        """Send bytes, unless the socket is gone."""
        if self.transport and not self.transport.is_closing():
            self.transport.write(data)

    def finish(self, how: Literal["fin", "rst"]) -> None:
        """Close this socket behind what has been written, with FIN or with RST."""
        if self.transport is None or self.transport.is_closing():
            return
        if how == "rst":
            sock = self.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.transport.close()

    def drop(self) -> None:
        """Close this socket with FIN now, without what the kernel has not taken yet."""
        if self.transport:
            self.transport.abort()

    def _ask_again(self, now: float) -> None:
        """Pump when the next byte is due; what is due at `now` already waits for `resume_writing`."""
        if self._alarm:
            self._alarm.cancel()
        at = self.pipe.next_at()
        self._alarm = asyncio.get_running_loop().call_later(at - now, self.pump) if at and at > now else None

    def _read_on(self, wanted: bool) -> None:
        if self.transport is None or self.transport.is_closing() or self.ended:
            return
        if wanted:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()


class ProxiedConnection:
    """One connection through the relay: the agent's leg, the fake's leg, and a pipe each way."""

    def __init__(self, owner: "ConnectionOwner") -> None:
        """Not connected to the upstream yet."""
        self.owner = owner
        self.up, self.down = Pipe(), Pipe()
        self.client, self.server = Endpoint(self, self.up), Endpoint(self, self.down)
        self.peer: Address | None = None
        self._open = 2
        self._connecting: asyncio.Task[None] | None = None

    def now(self) -> float:
        """The event loop's clock: all that happens here happens in one loop."""
        return asyncio.get_running_loop().time()

    def accept(self) -> Endpoint:
        """The protocol of a connection that an agent has just made."""
        self._connecting = asyncio.get_running_loop().create_task(self.connect())
        return self.client

    async def connect(self) -> None:
        """Dial the upstream; if it refuses, the agent gets FIN, as through Toxiproxy."""
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.create_connection(lambda: self.server, *self.owner.upstream)
        except OSError:
            self.client.finish("fin")
            self.leg_lost()
            return
        host, port = transport.get_extra_info("sockname")[:2]
        self.peer = (host, port)
        self.client.other, self.server.other = self.server, self.client
        self.client.pump()

    async def connected(self) -> None:
        """Wait until the upstream has been dialled, with whatever success."""
        if self._connecting:
            await asyncio.wait([self._connecting])

    @property
    def over(self) -> bool:
        """Whether one of its sockets is gone."""
        return self._open < 2

    def settled(self, pipe: Pipe) -> None:
        """All that a pipe let pass has been handed to the kernel."""
        self.owner.look(self, pipe)

    def leg_lost(self) -> None:
        """One socket is gone; with the second the passage is history."""
        self._open -= 1
        if self._open <= 0:
            self.owner.ended(self)

    def heal(self) -> None:
        """Take every fault from both pipes; open stalls end with FIN."""
        for leg in (self.client, self.server):
            leg.act(leg.pipe.heal())
            leg.pump()

    def abort(self) -> None:
        """Close both sides with FIN, whatever is still unwritten."""
        if self._connecting:
            self._connecting.cancel()
        for leg in (self.client, self.server):
            leg.drop()
