"""Holds new connections, so that a fault can be armed on one request.

While a fault waits for a request, a new connection waits at its first bytes. The first connection with bytes is chosen.
Later connections wait until that fault is done; then the next fault, if any, can choose one of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from wedgehog.harness.network.pipe import Pipe
from wedgehog.harness.network.proxied_connection import ConnectionOwner, ProxiedConnection

AGAIN_S = 0.02
"""How long connections behind a chosen request wait on for a next fault."""


@dataclass(eq=False, slots=True)
class ExpectedRequest:
    """A fault that waits for its request; `chosen` is called with the connection before its bytes pass."""

    chosen: Callable[[ProxiedConnection], None]


class ConnectionGate:
    """The open connections of one listening port; it holds those that must wait."""

    def __init__(self, owner: ConnectionOwner, *, everybody: bool) -> None:
        """Start open; with `everybody`, connections that have sent bytes wait too behind a chosen request."""
        self.connections: dict[ProxiedConnection, None] = {}
        """Oldest first: a set has another order in each process."""
        self._owner = owner
        self._everybody = everybody
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
                other.up.held = other.up.held or self._everybody
            self._struck.chosen(connection)

    def enter(self) -> ProxiedConnection:
        """Add a new connection."""
        connection = ProxiedConnection(self._owner)
        connection.up.held = bool(self._expected or self._struck)
        self.connections[connection] = None
        return connection

    def shut(self) -> None:
        """End every connection."""
        for connection in list(self.connections):
            connection.abort()


def let_through(connection: ProxiedConnection) -> None:
    """Release a connection."""
    connection.up.held = False
    connection.client.pump()


def _is_new(connection: ProxiedConnection) -> bool:
    return connection.up.carried == 0
