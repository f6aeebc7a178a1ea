"""The link of `wedgehog serve`: the fake provider's own sockets, with a `Pipe` in those that are struck.

```
 agent ◀──▶ socket ◀──▶ fake provider            until a reply is struck, and from then on:

 agent ◀──▶ socket ─────────────▶ fake provider
              ▲──── Pipe ◀── write ────┘
```

No second socket stands between: a request that nothing strikes costs nothing more.
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from wedgehog.fake_llm.observer import Conn
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.network.base import Address, Downstream, LinkBusyError, Proof, Target
from wedgehog.harness.network.pipe import Action, Close, Pipe, Send
from wedgehog.harness.network.port import Port

# SO_LINGER on, for zero seconds: close() sends RST.
_RESET = struct.pack("ii", 1, 0)
_PIECE = 1 << 16


class ProviderConnection(Protocol):
    """One connection of the fake provider, as an asyncio protocol; `carried` counts the bytes it has written."""

    conn: Conn
    transport: asyncio.Transport
    carried: int

    def get_buffer(self, sizehint: int) -> memoryview:
        """As an asyncio.BufferedProtocol's."""

    def buffer_updated(self, nbytes: int) -> None:
        """Likewise."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Likewise."""


class ProviderServer(Protocol):
    """The fake provider: it makes the protocol of each new connection, and knows those that are open."""

    @property
    def connections(self) -> Iterable[ProviderConnection]:
        """The open ones."""

    def connection(self) -> asyncio.BaseProtocol:
        """A new one."""


@dataclass(eq=False, slots=True)
class DirectStrike:
    """One fault armed on a connection from byte `at` on, or (`piped` is None) on the port."""

    link: "DirectLink"
    fault: WireFault
    at: int = 0
    piped: "PipedTransport | None" = None
    hit: "asyncio.Future[Proof]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    async def fired(self, timeout_s: float) -> Proof | None:
        """Wait for the proof that it has hit; None if there is none by then."""
        done, _ = await asyncio.wait([self.hit], timeout=timeout_s)
        return self.hit.result() if done else None

    @property
    def proof(self) -> str:
        """How we know that it has hit; empty as long as it has not."""
        return self.hit.result().how if self.hit.done() else ""

    @property
    def passed(self) -> int | None:
        """Bytes that its connection has carried towards the agent by now, None where it is about no connection."""
        return self.piped.carried if self.piped else None

    async def heal(self) -> None:
        """Take the fault away; a stall that is still open ends with FIN. Healing twice is harmless."""
        if self.piped:
            self.piped.heal()
        else:
            await self.link.open_again(self)

    def look(self, pipe: Pipe) -> None:
        """See whether what has just passed proves it."""
        if self.hit.done():
            return
        if pipe.stopped:
            self.hit.set_result(Proof(pipe.carried, f"{pipe.carried} bytes passed, then {pipe.stopped}"))
        elif self.fault.slows and pipe.carried > self.at:
            self.hit.set_result(Proof(pipe.carried, f"{self.fault.name} is on while bytes pass"))


class DirectLink:
    """The fake provider's listening port; replies are struck on its own connections."""

    def __init__(self, name: str, server: ProviderServer, address: Address) -> None:
        """Closed; entering it listens at `address` (port 0: a free one)."""
        self._server = server
        self._port = Port(name, address, server.connection)
        self._shut: set[DirectStrike] = set()

    @property
    def address(self) -> Address:
        """Where agents connect."""
        return self._port.address

    async def listen(self) -> None:
        """Open the port. OSError if that can't be."""
        await self._port.listen()

    def close(self) -> None:
        """Close the port; connections are the server's to close."""
        self._port.close()

    async def strike(self, fault: WireFault, target: Target) -> DirectStrike:
        """Arm a fault on the connection of a reply that the fake provider holds, or on the port."""
        if fault.closes_port or not isinstance(target, Downstream):
            return await self._refuse(fault)
        piped = self._piped(target.conn)
        strike = DirectStrike(self, fault, target.at, piped)
        piped.arm(strike)
        return strike

    async def open_again(self, strike: DirectStrike) -> None:
        """Listen again, unless another fault keeps the port closed."""
        if strike in self._shut:
            self._shut.remove(strike)
            if not self._shut:
                await self._port.listen()

    async def _refuse(self, fault: WireFault) -> DirectStrike:
        """Close the port for real, end what is open, and knock."""
        strike = DirectStrike(self, fault)
        self._shut.add(strike)
        self._port.refuse()
        for connection in list(self._server.connections):
            connection.transport.abort()
        strike.hit.set_result(Proof(None, await self._port.prove_refusal()))
        return strike

    def _piped(self, conn: Address) -> "PipedTransport":
        for connection in self._server.connections:
            if connection.conn.peer == conn:
                transport = connection.transport
                return transport if isinstance(transport, PipedTransport) else PipedTransport(connection)
        raise LinkBusyError(f"there is no open connection from {conn[0]}:{conn[1]}")


class PipedTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """Takes its place between a connection of the fake and the socket: what the fake writes goes through `pipe`.

    To the fake it is the transport, to the socket the protocol.
    """

    def __init__(self, connection: ProviderConnection) -> None:
        """From now on; bytes that the socket has not sent yet go first."""
        super().__init__()
        self.pipe = Pipe(carried=connection.carried)
        self._connection, self._socket = connection, connection.transport
        self._strikes: list[DirectStrike] = []
        self._ready: deque[Action] = deque()
        """What the pipe has let pass, and waits until the kernel takes it."""
        self._alarm: asyncio.TimerHandle | None = None
        self._is_closing = False
        self.get_buffer, self.buffer_updated = connection.get_buffer, connection.buffer_updated  # type: ignore[method-assign]
        connection.transport = self
        self._socket.set_protocol(self)
        # A buffer of our own would make the count of sent bytes a guess.
        self._socket.set_write_buffer_limits(high=0)

    @property
    def carried(self) -> int:
        """Bytes that were given to the kernel, since the connection's first."""
        return self.pipe.carried - sum(len(action.data) for action in self._ready if isinstance(action, Send))

    def arm(self, strike: DirectStrike) -> None:
        """Do the harm to what is written from now on."""
        self._strikes.append(strike)
        strike.fault.on_pipe(self.pipe, strike.at)

    def heal(self) -> None:
        """Take all faults away."""
        self._ready.extend(self.pipe.heal())
        self._pump()

    # ---- the fake's transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send what may pass, piece by piece."""
        now, whole = self._now(), bytes(data)
        for start in range(0, len(whole), _PIECE):
            self.pipe.feed(whole[start : start + _PIECE], now)
        self._pump()

    def close(self) -> None:
        """Close behind what has been written."""
        self._is_closing = True
        self.pipe.end(self._now())
        self._pump()

    def abort(self) -> None:
        """Close now."""
        self._socket.abort()

    def is_closing(self) -> bool:
        """Whether nothing more can be written."""
        return self._is_closing or self._socket.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """What the socket says."""
        return self._socket.get_extra_info(name, default)

    # ---- the socket's protocol

    def resume_writing(self) -> None:
        """The kernel has taken all that was sent."""
        self._pump()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is gone."""
        if self._alarm:
            self._alarm.cancel()
        self._connection.connection_lost(exc)

    # ---- between them

    def _pump(self) -> None:
        """Send what the pipe lets pass now, as fast as the kernel takes it, and ask again when the pipe says."""
        now = self._now()
        self._ready.extend(self.pipe.ready(now))
        while self._ready and not self._socket.get_write_buffer_size():
            self._act(self._ready.popleft())
        if not self._ready:
            for strike in self._strikes:
                strike.look(self.pipe)
        if self._alarm:
            self._alarm.cancel()
        at = self.pipe.next_at()
        self._alarm = asyncio.get_running_loop().call_later(at - now, self._pump) if at and at > now else None

    def _act(self, action: Action) -> None:
        match action:
            case _ if self._socket.is_closing():
                pass
            case Send(data):
                self._socket.write(data)
            case Close("rst"):
                sock = self._socket.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                self._socket.close()
            case Close():
                self._socket.close()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
