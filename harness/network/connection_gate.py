"""A listening port that holds new connections, so that a fault can be armed on one request.

While a fault waits for a request, a new connection waits at its first bytes. The first connection with bytes is chosen.
Later connections wait until that fault is done; then the next fault, if any, can choose one of them.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from wedgehog.harness.network.base import Address
from wedgehog.harness.network.pipe import Pipe
from wedgehog.harness.network.port import Port
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.network.proxied_connection import Endpoint, ProxiedConnection
from wedgehog.harness.record.clock import first_of

AGAIN_S = 0.02
"""How long connections behind a chosen request wait on for a next fault."""


@dataclass(eq=False, slots=True)
class ExpectedRequest:
    """A fault that waits for its request; `chosen` is called with the connection before its bytes pass."""

    chosen: Callable[[ProxiedConnection], None]


class ConnectionGate(Port):
    """A port whose connections go to `upstream`; it holds those that must wait."""

    tells_resets = False
    everybody = False
    """Whether connections that have sent bytes wait too behind a chosen request."""

    def __init__(self, name: str, upstream: Address) -> None:
        """Start closed and without a fault; `listen` opens a free port."""
        super().__init__(name, (HOST, 0), self.accept)
        self.upstream = upstream
        self.connections: dict[ProxiedConnection, None] = {}
        """The open connections, oldest first: a set has another order in each process."""
        self._expected: list[ExpectedRequest] = []
        self._struck: ExpectedRequest | None = None

    def expect(self, chosen: Callable[[ProxiedConnection], None]) -> ExpectedRequest:
        """Choose the next new connection with bytes; the caller must call `done` in any case."""
        expected = ExpectedRequest(chosen)
        self._expected.append(expected)
        for connection in self.connections:
            connection.up.held = connection.up.held or _is_new(connection)
        return expected

    def done(self, expected: ExpectedRequest) -> None:
        """End a fault's wait or choice, and release the connections that wait only for it."""
        if expected in self._expected:
            self._expected.remove(expected)
        if self._struck is expected:
            self._struck = None
        for connection in list(self.connections):
            if self._struck:
                return
            if self._expected and _is_new(connection):
                self.look(connection, connection.up)
            else:
                let_through(connection)

    def look(self, connection: ProxiedConnection, pipe: Pipe) -> None:
        """Choose this connection if its bytes are the first ones that a fault waits for."""
        if self._struck or not self._expected:
            return
        if pipe is connection.up and pipe.held and pipe.waiting and _is_new(connection):
            self._struck = self._expected.pop(0)
            for other in self.connections:
                other.up.held = other.up.held or self.everybody
            self._struck.chosen(connection)

    def accept(self) -> Endpoint:
        """Add a new connection, and return the protocol of the agent's side."""
        connection = ProxiedConnection(self)
        connection.up.held = bool(self._expected or self._struck)
        self.connections[connection] = None
        return connection.accept()

    def ended(self, connection: ProxiedConnection) -> None:
        """Forget a closed connection."""
        self.connections.pop(connection, None)

    def release(self) -> None:
        """Close the port and every connection."""
        super().release()
        for connection in list(self.connections):
            connection.abort()

    async def close(self) -> None:
        """Close the port and every connection, and let the sockets close."""
        self.release()
        await asyncio.sleep(0)


class RequestGate(ConnectionGate):
    """A gate in front of a Toxiproxy proxy, which holds all other requests while a fault is armed for one request.

        agents ═▶ request gate ═▶ Toxiproxy ═▶ fake provider

    A limit is a setting of the whole proxy. For replies the fake provider holds all other connections; requests come
    from agents, so they wait here until the chosen request has reached the limit, and it is lifted again.
    """

    tells_resets = True
    everybody = True

    @contextlib.asynccontextmanager
    async def next_one(self, withdrawn: asyncio.Event) -> AsyncIterator[ProxiedConnection | None]:
        """Wait for the next new connection with bytes; hold it and all others until the block ends. None: withdrawn."""
        coming: asyncio.Future[ProxiedConnection] = asyncio.get_running_loop().create_future()
        expected = self.expect(coming.set_result)
        try:
            await first_of(coming, withdrawn.wait())
            yield None if withdrawn.is_set() else coming.result()
        finally:
            self.done(expected)


def let_through(connection: ProxiedConnection) -> None:
    """Release a connection."""
    connection.up.held = False
    connection.client.pump()


def _is_new(connection: ProxiedConnection) -> bool:
    return connection.up.carried == 0
