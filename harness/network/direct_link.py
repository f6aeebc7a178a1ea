"""The link of `wedgehog serve`: the fake provider's own sockets, with a `Pipe` on those with a fault.

```
 agent ◀──▶ socket ◀──▶ fake provider            until a fault is armed on a reply, and from then on:

 agent ◀──▶ socket ─────────────▶ fake provider
              ▲──── Pipe ◀── write ────┘
```

There is no second socket: a request without a fault costs nothing more.
"""

import asyncio
import functools
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from wedgehog.fake_llm.observer import Conn
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.network.base import Address, ConnectionGoneError, Downstream, Proof, Strike, Target
from wedgehog.harness.network.pipe import Action, Close, Pipe, Send
from wedgehog.harness.network.port import Port, prove_refusal
from wedgehog.harness.network.proxied_connection import close, pump_later

_PIECE = 1 << 16


class ProviderConnection(Protocol):
    """One connection of the fake provider, as an asyncio protocol; `carried` counts the bytes it has written."""

    conn: Conn
    transport: asyncio.Transport
    carried: int

    def get_buffer(self, sizehint: int) -> memoryview:
        """See asyncio.BufferedProtocol."""

    def buffer_updated(self, nbytes: int) -> None:
        """See asyncio.BufferedProtocol."""

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.BaseProtocol."""


class ProviderServer(Protocol):
    """The fake provider: it makes the protocol of each new connection, and lists the open connections."""

    @property
    def connections(self) -> Iterable[ProviderConnection]:
        """The open connections."""

    def connection(self) -> asyncio.BaseProtocol:
        """A protocol for a new connection."""


@dataclass(eq=False)
class DirectStrike(Strike):
    """One fault armed on a connection from byte `at` on, or (`piped` is None) on the port."""

    link: "DirectLink"
    fault: WireFault
    at: int = 0
    piped: "PipedTransport | None" = None
    healed: bool = False

    @property
    def proof(self) -> str:
        """The proof that the fault was applied; empty before that."""
        proof = self.hit.result() if self.hit.done() else None
        return proof.how if proof else ""

    @property
    def passed(self) -> int | None:
        """Bytes that its connection has carried towards the agent so far, None for a fault on the port."""
        return self.piped.carried if self.piped else None

    async def heal(self) -> None:
        """Remove the fault; an open stall ends with FIN. A second call does nothing."""
        if self.piped:
            self.piped.heal(self)
        else:
            await self.link.open_again(self)

    def look(self, pipe: Pipe) -> None:
        """Record a proof if the bytes that just passed give one."""
        if pipe.stopped:
            self.settle(Proof(pipe.carried, f"{pipe.carried} bytes passed, then {pipe.stopped}"))
        elif self.fault.slows and pipe.carried > self.at:
            self.settle(Proof(pipe.carried, f"{self.fault.name} is on while bytes pass"))


class DirectLink(Port):
    """The fake provider's listening port; faults are armed on its own connections."""

    def __init__(self, name: str, server: ProviderServer, address: Address) -> None:
        """Start closed; `listen` opens `address` (port 0: a free port)."""
        super().__init__(name, address, server.connection)
        self._provider = server
        self._shut: set[DirectStrike] = set()

    async def strike(self, fault: WireFault, target: Target) -> DirectStrike:
        """Arm a fault on the connection of a reply that is held, or on the port."""
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
                await self.listen()

    async def _refuse(self, fault: WireFault) -> DirectStrike:
        """Close the port, end open connections, and prove the refusal."""
        strike = DirectStrike(self, fault)
        self._shut.add(strike)
        self.refuse()
        for connection in list(self._provider.connections):
            connection.transport.abort()
        strike.settle(await prove_refusal(self.name, self.address))
        return strike

    def _piped(self, conn: Address) -> "PipedTransport":
        for connection in self._provider.connections:
            if connection.conn.peer == conn:
                transport = connection.transport
                return transport if isinstance(transport, PipedTransport) else PipedTransport(connection)
        raise ConnectionGoneError(f"there is no open connection from {conn[0]}:{conn[1]}")


class PipedTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """The transport of a fake provider's connection and its socket's protocol; what the fake writes crosses `pipe`."""

    def __init__(self, connection: ProviderConnection) -> None:
        """Replace the connection's transport; bytes in the socket's buffer go first."""
        super().__init__()
        self.pipe = Pipe(carried=connection.carried)
        self._connection, self._socket = connection, connection.transport
        self._strikes: list[DirectStrike] = []
        self._ready: deque[Action] = deque()
        """Actions of the pipe that wait for the kernel."""
        self._alarm: asyncio.TimerHandle | None = None
        self._is_closing = False
        self.get_buffer, self.buffer_updated = connection.get_buffer, connection.buffer_updated  # type: ignore[method-assign]
        connection.transport = self
        self._socket.set_protocol(self)
        # With a write buffer, the count of sent bytes would be a guess.
        self._socket.set_write_buffer_limits(high=0)

    @property
    def carried(self) -> int:
        """Bytes given to the kernel since the connection began."""
        return self.pipe.carried - sum(len(action.data) for action in self._ready if isinstance(action, Send))

    def arm(self, strike: DirectStrike) -> None:
        """Apply the fault to bytes written from now on."""
        self._strikes.append(strike)
        strike.fault.on_pipe(self.pipe, strike.at)

    def heal(self, strike: DirectStrike) -> None:
        """Remove this fault; the others stay."""
        if strike.healed:
            return
        strike.healed = True
        left = [functools.partial(it.fault.on_pipe, at=it.at) for it in self._strikes if not it.healed]
        self._ready.extend(self.pipe.heal(left))
        self._pump()

    # ---- the fake's transport

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Feed the pipe piece by piece, and send what it lets pass."""
        now, whole = self._now(), bytes(data)
        for start in range(0, len(whole), _PIECE):
            self.pipe.feed(whole[start : start + _PIECE], now)
        self._pump()

    def close(self) -> None:
        """Close after the written bytes."""
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
        """Return the socket's information."""
        return self._socket.get_extra_info(name, default)

    # ---- the socket's protocol

    def resume_writing(self) -> None:
        """The kernel has taken all sent bytes."""
        self._pump()

    def connection_lost(self, exc: Exception | None) -> None:
        """The socket is closed."""
        if self._alarm:
            self._alarm.cancel()
        self._connection.connection_lost(exc)

    # ---- between them

    def _pump(self) -> None:
        """Send what the pipe lets pass now, as fast as the kernel takes it, and schedule the next time."""
        now = self._now()
        self._ready.extend(self.pipe.ready(now))
        while self._ready and not self._socket.get_write_buffer_size():
            self._act(self._ready.popleft())
        if not self._ready:
            for strike in self._strikes:
                strike.look(self.pipe)
        self._alarm = pump_later(self._pump, self.pipe, now, self._alarm)

    def _act(self, action: Action) -> None:
        match action:
            case _ if self._socket.is_closing():
                pass
            case Send(data):
                self._socket.write(data)
            case Close(how):
                close(self._socket, how)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
