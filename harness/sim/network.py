"""The network `sim`: the embedded relay, unchanged, on the loop's TCP."""

import asyncio
from collections.abc import Callable
from typing import cast

from wedgehog.harness.network.base import Address, NetworkError, NetworkName
from wedgehog.harness.network.relay import EmbeddedNetwork
from wedgehog.harness.sim.loop import SimLoop


class SimPort:
    """A listening port of the simulated world, which can refuse connections; the counterpart of `network.port.Port`."""

    def __init__(self, name: str, address: Address, accept: Callable[[], asyncio.BaseProtocol]) -> None:
        """Start closed; `listen` opens it (port 0: a free one, then the same)."""
        self.address = address
        self._name, self._accept = name, accept
        self._server: asyncio.AbstractServer | None = None

    async def listen(self) -> None:
        """Accept connections."""
        loop = cast(SimLoop, asyncio.get_running_loop())
        server = self._server = await loop.create_server(self._accept, *self.address)
        self.address = server.address

    def refuse(self) -> None:
        """Refuse connections."""
        self.close()

    async def prove_refusal(self) -> str:
        """Return the proof that a connect is refused; raise NetworkError if it is not."""
        host, port = self.address
        try:
            transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, host, port)
        except ConnectionRefusedError:
            return f"our own connect to {host}:{port} was refused"
        transport.abort()
        raise NetworkError(f"link {self._name}: something still answers at port {port}")

    def close(self) -> None:
        """Stop listening."""
        if self._server:
            self._server.close()
            self._server = None


class SimNetwork(EmbeddedNetwork):
    """Links made of the relay, inside of a `SimLoop`."""

    name: NetworkName = "sim"

    def __init__(self) -> None:
        """Start without links."""
        super().__init__(SimPort)
