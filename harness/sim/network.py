"""The network `sim`: the embedded relay, unchanged, on the loop's TCP."""

import asyncio
from typing import Self, cast

from wedgehog.harness.network.base import NetworkError, NetworkName, Proof
from wedgehog.harness.network.relay import EmbeddedNetwork, RelayLink
from wedgehog.harness.sim.loop import SimLoop


class SimLink(RelayLink):
    """A link whose port is in the simulated world."""

    _listener: asyncio.AbstractServer | None = None

    async def listen(self) -> Self:
        """Accept connections."""
        loop = cast(SimLoop, asyncio.get_running_loop())
        server = self._listener = await loop.create_server(self._accept, *self.address)
        self.address = server.address
        return self

    def refuse(self) -> None:
        """Refuse connections."""
        self.release()

    async def prove_refusal(self) -> Proof:
        """Return the proof that a connect is refused; raise NetworkError if it is not."""
        host, port = self.address
        try:
            transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, host, port)
        except ConnectionRefusedError:
            return Proof(None, f"our own connect to {host}:{port} was refused")
        transport.abort()
        raise NetworkError(f"link {self.name}: something still answers at port {port}")

    def release(self) -> None:
        """Stop listening, and close every connection."""
        if self._listener:
            self._listener.close()
            self._listener = None
        super().release()


class SimNetwork(EmbeddedNetwork):
    """Links made of the relay, inside of a `SimLoop`."""

    name: NetworkName = "sim"
    link_class = SimLink
