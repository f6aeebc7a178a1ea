"""Before a Toxiproxy proxy: while one request is struck, nobody else's bytes may come to it.

A limit is a setting of the whole proxy. On replies the fake provider holds all others back; requests come from agents,
so something must stand where they come in:

    agents ═▶ turnstile ═▶ Toxiproxy ═▶ fake

Everybody waits, until the limit stands, the chosen request has met it, and it is lifted again.
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
    """A listening port whose connections go to `upstream`, one at a time where that is wanted."""

    tells_resets = True

    def __init__(self, upstream: Address) -> None:
        """Closed; `listen` opens it."""
        self.upstream = upstream
        self.address: Address = (HOST, free_port())
        self._door = ConnectionGate(self, everybody=True)
        self._server: asyncio.Server | None = None

    async def listen(self) -> Self:
        """Open the port, always the same."""
        self._server = await asyncio.get_running_loop().create_server(self._accept, *self.address)
        return self

    async def shut(self) -> None:
        """Close the port and every connection."""
        if self._server:
            self._server.close()
            self._server = None
        self._door.shut()
        await asyncio.sleep(0)

    @contextlib.asynccontextmanager
    async def next_one(self, withdrawn: asyncio.Event) -> AsyncIterator[ProxiedConnection | None]:
        """The next new connection that brings bytes, which have not passed yet, or None once the event is set.

        Everybody else waits until the block ends.
        """
        coming: asyncio.Future[ProxiedConnection] = asyncio.get_running_loop().create_future()
        stop = asyncio.ensure_future(withdrawn.wait())
        expected = self._door.expect(coming.set_result)
        try:
            either: list[asyncio.Future[Any]] = [coming, stop]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            yield None if withdrawn.is_set() else coming.result()
        finally:
            stop.cancel()
            self._door.done(expected)

    def look(self, passage: ProxiedConnection, pipe: Pipe) -> None:
        """Something came."""
        self._door.look(passage, pipe)

    def ended(self, passage: ProxiedConnection) -> None:
        """A passage is history."""
        self._door.connections.discard(passage)

    def _accept(self) -> Endpoint:
        return self._door.enter().accept()
