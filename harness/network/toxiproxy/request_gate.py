"""A gate in front of a Toxiproxy proxy, which holds all other requests while a fault is armed for one request.

A limit is a setting of the whole proxy. For replies the fake provider holds all other connections. Requests come from
agents, so a gate in front of the proxy holds them:

    agents ═▶ request gate ═▶ Toxiproxy ═▶ fake provider

The others wait until the limit is armed, the chosen request has reached it, and it is lifted again.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Self

from wedgehog.harness.network.base import Address
from wedgehog.harness.network.connection_gate import ConnectionGate
from wedgehog.harness.network.pipe import Pipe
from wedgehog.harness.network.ports import HOST, free_port
from wedgehog.harness.network.proxied_connection import Endpoint, ProxiedConnection


class RequestGate:
    """A listening port that forwards to `upstream` and can hold all connections but one."""

    tells_resets = True

    def __init__(self, upstream: Address) -> None:
        """Choose a port; `listen` opens it."""
        self.upstream = upstream
        self.address: Address = (HOST, free_port())
        self._gate = ConnectionGate(self, everybody=True)
        self._server: asyncio.Server | None = None

    async def listen(self) -> Self:
        """Open the port; it is the same each time."""
        self._server = await asyncio.get_running_loop().create_server(self._accept, *self.address)
        return self

    async def shut(self) -> None:
        """Close the port and every connection."""
        if self._server:
            self._server.close()
            self._server = None
        self._gate.shut()
        await asyncio.sleep(0)

    @contextlib.asynccontextmanager
    async def next_one(self, withdrawn: asyncio.Event) -> AsyncIterator[ProxiedConnection | None]:
        """Wait for the next new connection with bytes, and hold them; None when `withdrawn` is set.

        All other connections wait until the block ends.
        """
        coming: asyncio.Future[ProxiedConnection] = asyncio.get_running_loop().create_future()
        stop = asyncio.ensure_future(withdrawn.wait())
        expected = self._gate.expect(coming.set_result)
        try:
            either: list[asyncio.Future[Any]] = [coming, stop]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            yield None if withdrawn.is_set() else coming.result()
        finally:
            stop.cancel()
            self._gate.done(expected)

    def look(self, connection: ProxiedConnection, pipe: Pipe) -> None:
        """Pass new bytes to the gate."""
        self._gate.look(connection, pipe)

    def ended(self, connection: ProxiedConnection) -> None:
        """Forget a connection that has ended."""
        self._gate.connections.pop(connection, None)

    def _accept(self) -> Endpoint:
        return self._gate.enter().accept()
