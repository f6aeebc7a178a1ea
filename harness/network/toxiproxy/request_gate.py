"""A gate in front of a Toxiproxy proxy, which holds all other requests while a fault is armed for one request.

A limit is a setting of the whole proxy. For replies the fake provider holds all other connections. Requests come from
agents, so a gate in front of the proxy holds them:

    agents ═▶ request gate ═▶ Toxiproxy ═▶ fake provider

The others wait until the limit is armed, the chosen request has reached it, and it is lifted again.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from wedgehog.harness.network.connection_gate import ConnectionGate
from wedgehog.harness.network.proxied_connection import ProxiedConnection
from wedgehog.harness.record.clock import first_of


class RequestGate(ConnectionGate):
    """A listening port that forwards to `upstream` and can hold all connections but one."""

    tells_resets = True
    everybody = True

    @contextlib.asynccontextmanager
    async def next_one(self, withdrawn: asyncio.Event) -> AsyncIterator[ProxiedConnection | None]:
        """Wait for the next new connection with bytes, and hold them; None when `withdrawn` is set.

        All other connections wait until the block ends.
        """
        coming: asyncio.Future[ProxiedConnection] = asyncio.get_running_loop().create_future()
        expected = self.expect(coming.set_result)
        try:
            await first_of(coming, withdrawn.wait())
            yield None if withdrawn.is_set() else coming.result()
        finally:
            self.done(expected)
