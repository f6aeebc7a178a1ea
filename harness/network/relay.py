"""The embedded network: an asyncio TCP relay that passes all bytes through a `Pipe`; a close of a side closes both."""

import asyncio
import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.network.base import (
    Address,
    ConnectionGoneError,
    Downstream,
    LinkBusyError,
    NetworkName,
    Proof,
    Strike,
    Target,
    Upstream,
    WholeLink,
)
from wedgehog.harness.network.connection_gate import AGAIN_S, ConnectionGate, ExpectedRequest, let_through
from wedgehog.harness.network.pipe import Pipe
from wedgehog.harness.network.proxied_connection import Endpoint, ProxiedConnection

ARRIVE_S = 2.0
"""Time limit for bytes that were written before a fault is armed to come."""
POLL_S = 0.001


@dataclass(eq=False)
class RelayStrike(Strike):
    """One fault armed on a relay link."""

    link: "RelayLink"
    fault: WireFault
    target: Target
    connection: ProxiedConnection | None = None
    expected: ExpectedRequest | None = None
    """Its entry in the gate, if it is for a request."""
    began: dict[ProxiedConnection, int] = field(default_factory=dict)
    """From which byte a fault of the whole link is on each connection."""
    healed: bool = False

    def begin(self, connection: ProxiedConnection, at: int) -> None:
        """Put a fault of the whole link on this connection."""
        self.began[connection] = at
        self.fault.on_pipe(connection.down, at)

    async def heal(self) -> None:
        """Remove the fault."""
        if not self.healed:
            self.healed = True
            await self.link.heal(self)


class RelayLink(ConnectionGate):
    """A link through a port of our own."""

    def __init__(self, name: str, upstream: Address) -> None:
        """Start closed; `listen` opens a free port."""
        super().__init__(name, upstream)
        self._strikes: list[RelayStrike] = []

    async def admit(self, conn: Address, carried: int) -> None:
        """Return at once: each connection has its own pipe."""

    async def strike(self, fault: WireFault, target: Target) -> RelayStrike:
        """Arm the fault on the pipes of the target."""
        strike = RelayStrike(self, fault, target)
        self._strikes.append(strike)
        if fault.closes_port:
            self.refuse()
            strike.settle(await self.prove_refusal())
        else:
            await self._arm(strike)
        return strike

    def look(self, connection: ProxiedConnection, pipe: Pipe) -> None:
        """Check if an expected request has come, or if the bytes that just passed prove a fault."""
        super().look(connection, pipe)
        for strike in self._strikes:
            if strike.hit.done() or not _touches(strike, connection, pipe):
                continue
            if pipe.stopped:
                how = f"the relay let {pipe.carried} bytes pass, then {pipe.stopped}"
                strike.settle(Proof(pipe.carried, how))
            elif strike.fault.proof == "flow" and pipe.carried > _from(strike, connection):
                strike.settle(Proof(pipe.carried, f"the relay has {strike.fault.name} on while bytes pass"))

    def ended(self, connection: ProxiedConnection) -> None:
        """Forget a closed connection and the faults armed on it."""
        super().ended(connection)
        self._strikes = [strike for strike in self._strikes if strike.connection is not connection]

    async def heal(self, strike: RelayStrike) -> None:
        """Remove one fault, and listen again if it had closed the port."""
        if strike in self._strikes:
            self._strikes.remove(strike)
        if strike.expected and strike.connection is None:
            self.done(strike.expected)
        if strike.fault.closes_port:
            if not any(other.fault.closes_port for other in self._strikes):
                await self.listen()
            return
        whole = isinstance(strike.target, WholeLink)
        for connection in list(self.connections if whole else filter(None, [strike.connection])):
            connection.heal(functools.partial(self._left, connection))

    def _left(self, connection: ProxiedConnection, pipe: Pipe) -> list[Callable[[Pipe], None]]:
        """What arms the faults again that are on this pipe."""
        others = [it for it in self._strikes if not it.fault.closes_port and _touches(it, connection, pipe)]
        return [functools.partial(it.fault.on_pipe, at=_from(it, connection)) for it in others]

    def accept(self) -> Endpoint:
        """Add a new connection, under the faults of the whole link."""
        client = super().accept()
        for strike in self._strikes:
            if isinstance(strike.target, WholeLink) and not strike.fault.closes_port:
                strike.begin(client.connection, 0)
        return client

    def _meet(self, strike: RelayStrike, connection: ProxiedConnection) -> None:
        """Arm the fault on this connection's request; later connections wait `AGAIN_S` for the next fault."""
        strike.connection = connection
        strike.fault.on_pipe(connection.up, _from(strike, connection))
        if strike.expected:
            asyncio.get_running_loop().call_later(AGAIN_S, self.done, strike.expected)
        let_through(connection)

    async def _arm(self, strike: RelayStrike) -> None:
        match strike.target:
            case Downstream(conn, at):
                strike.connection = await self._connection(conn)
                strike.fault.on_pipe(strike.connection.down, at)
            case WholeLink(conn, at):
                held = None if conn is None else await self._connection(conn)
                if held is not None:
                    await self._come(held, at)
                for connection in [it for it in self.connections if it not in strike.began]:
                    strike.begin(connection, at if connection is held else connection.down.carried)
            case _:
                strike.expected = self.expect(functools.partial(self._meet, strike))

    async def _connection(self, conn: Address) -> ProxiedConnection:
        """The connection from `conn`; the fake provider can accept it before the relay's own task continues."""
        for connection in list(self.connections):
            await connection.connected()
            if connection.peer == conn:
                return connection
        raise ConnectionGoneError(f"link {self.name} has no open connection from {conn[0]}:{conn[1]}")

    async def _come(self, connection: ProxiedConnection, count: int) -> None:
        """Wait until `count` bytes of a connection have come from upstream: those on a slow link pass later."""
        end_s = connection.now() + ARRIVE_S
        while connection.down.come < count and connection.down.reading and not connection.over:
            if connection.now() > end_s:
                raise LinkBusyError(f"link {self.name}: byte {count} did not come from upstream in {ARRIVE_S:g} s")
            await asyncio.sleep(POLL_S)


def _touches(strike: RelayStrike, connection: ProxiedConnection, pipe: Pipe) -> bool:
    mine = connection in strike.began or strike.connection is connection
    return mine and pipe is (connection.up if isinstance(strike.target, Upstream) else connection.down)


def _from(strike: RelayStrike, connection: ProxiedConnection) -> int:
    return strike.began[connection] if isinstance(strike.target, WholeLink) else strike.target.at


class EmbeddedNetwork:
    """Links made of our own relay."""

    name: NetworkName = "embedded"
    link_class: type[RelayLink] = RelayLink

    def __init__(self) -> None:
        self._links: list[RelayLink] = []

    async def open_link(self, name: str, upstream: Address, resets: bool, requests: bool = False) -> RelayLink:
        """Open a link; the relay does not need `requests`, and passes an upstream's RST on where `resets` says so."""
        link = await self.link_class(name, upstream).listen()
        link.tells_resets = resets
        self._links.append(link)
        return link

    async def alive(self) -> bool:
        """Always true: the relay runs in this process."""
        return True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for link in self._links:
            with contextlib.suppress(OSError):
                await link.close()
        self._links.clear()
