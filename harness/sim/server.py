"""A listening server in memory."""

import asyncio
import sys
from collections.abc import Callable
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Self

from wedgehog.harness.network.base import Address

if TYPE_CHECKING:
    import ssl

    from wedgehog.harness.sim.net import Net
    from wedgehog.harness.sim.sim_socket import SimSocket
    from wedgehog.harness.sim.tcp import SimTransport


class SimServer(asyncio.AbstractServer):
    """What `create_server` returns: it listens at one address."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        net: "Net",
        listening: "SimSocket",
        accept: Callable[[], asyncio.BaseProtocol],
        tls: "ssl.SSLContext | None",
    ) -> None:
        """Not listening: `start_serving` begins."""
        self.address: Address = listening.getsockname()
        self.accept, self.tls, self.context = accept, tls, copy_context()
        self._sim_loop, self._net, self._listening = loop, net, listening
        self._transports: dict[SimTransport, None] = {}
        self._is_closed = False
        self._gone: asyncio.Future[None] = loop.create_future()

    @property
    def sockets(self) -> tuple[Any, ...]:
        """One listening socket, until it is closed."""
        return () if self._is_closed else (self._listening,)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop."""
        return self._sim_loop

    def is_serving(self) -> bool:
        """Whether it accepts connections."""
        return self._net.listeners.get(self.address) is self

    async def start_serving(self) -> None:
        """Accept connections."""
        self._net.listen(self)

    async def serve_forever(self) -> None:
        """Accept connections until this is cancelled."""
        await self.start_serving()
        try:
            await asyncio.Event().wait()
        finally:
            self.close()

    def attach(self, transport: "SimTransport") -> None:
        """Count an open connection."""
        self._transports[transport] = None

    def detach(self, transport: "SimTransport") -> None:
        """Forget a closed connection."""
        self._transports.pop(transport, None)
        self._tell_if_gone()

    def close(self) -> None:
        """Refuse new connections; open ones stay."""
        if self.is_serving():
            del self._net.listeners[self.address]
        self._is_closed = True
        self._tell_if_gone()

    def close_clients(self) -> None:
        """Close every connection."""
        for transport in list(self._transports):
            transport.close()

    def abort_clients(self) -> None:
        """Close every connection now."""
        for transport in list(self._transports):
            transport.abort()

    async def wait_closed(self) -> None:
        """Wait until it is closed and its connections are; before Python 3.12, only until it is closed."""
        if not self._is_closed or sys.version_info >= (3, 12):
            await asyncio.shield(self._gone)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.close()
        await self.wait_closed()

    def _tell_if_gone(self) -> None:
        if self._is_closed and not self._transports and not self._gone.done():
            self._gone.set_result(None)
