"""The embedded network: an asyncio TCP relay that passes every byte through a `Pipe`, used without Toxiproxy.

Without a fault it changes no byte, and passes back pressure and closes in order. As through Toxiproxy, a close of
either side closes both.
"""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Self

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.network.base import (
    Address,
    Downstream,
    LinkBusyError,
    NetworkName,
    Proof,
    Provable,
    Target,
    Upstream,
    WholeLink,
)
from wedgehog.harness.network.connection_gate import AGAIN_S, ConnectionGate, ExpectedRequest, let_through
from wedgehog.harness.network.pipe import Pipe
from wedgehog.harness.network.port import ListeningPort, Port
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.network.proxied_connection import Endpoint, ProxiedConnection

ARRIVE_S = 2.0
"""Time limit for bytes that were written before a fault is armed to pass."""
POLL_S = 0.001
PortFactory = Callable[[str, Address, Callable[[], asyncio.BaseProtocol]], ListeningPort]


@dataclass(eq=False, slots=True)
class RelayStrike(Provable):
    """One fault armed on a relay link."""

    link: "RelayLink"
    fault: WireFault
    spot: Target
    hit: "asyncio.Future[Proof]"
    connection: ProxiedConnection | None = None
    expected: ExpectedRequest | None = None
    """Its entry in the gate, if it is for a request."""
    carried: dict[ProxiedConnection, int] = field(default_factory=dict)
    """The bytes that each open connection of a whole link had carried when the fault was armed."""
    healed: bool = False

    async def heal(self) -> None:
        """Remove the fault."""
        if not self.healed:
            self.healed = True
            await self.link.heal(self)


class RelayLink:
    """A listening port whose connections go to `upstream`."""

    tells_resets = False

    def __init__(self, name: str, upstream: Address, port: PortFactory = Port) -> None:
        """Start closed; `listen` opens a free port."""
        self.name, self.upstream, self.address = name, upstream, (HOST, 0)
        self._gate = ConnectionGate(self, everybody=False)
        self._port = port(name, self.address, self._accept)
        self._strikes: list[RelayStrike] = []

    @property
    def connections(self) -> Collection[ProxiedConnection]:
        """Its open connections, oldest first."""
        return self._gate.connections

    async def listen(self) -> Self:
        """Open the port: a free one the first time, then the same."""
        await self._port.listen()
        self.address = self._port.address
        return self

    async def admit(self, conn: Address, carried: int) -> None:
        """Return at once: each connection has its own pipe."""

    async def strike(self, fault: WireFault, spot: Target) -> RelayStrike:
        """Arm the fault on the pipes of the target."""
        strike = RelayStrike(self, fault, spot, asyncio.get_running_loop().create_future())
        self._strikes.append(strike)
        if fault.closes_port:
            await self._shut(strike)
        else:
            await self._arm(strike)
        return strike

    def look(self, connection: ProxiedConnection, pipe: Pipe) -> None:
        """Check if an expected request has come, or if the bytes that just passed prove a fault."""
        self._gate.look(connection, pipe)
        for strike in self._strikes:
            if strike.hit.done() or not _touches(strike, connection, pipe):
                continue
            if pipe.stopped:
                strike.prove(pipe.carried, f"the relay let {pipe.carried} bytes pass, then {pipe.stopped}")
            elif strike.fault.proof == "flow" and pipe.carried > strike.carried.get(connection, _from(strike)):
                strike.prove(pipe.carried, f"the relay has {strike.fault.name} on while bytes pass")

    def ended(self, connection: ProxiedConnection) -> None:
        """Forget a closed connection and the faults armed on it."""
        self._gate.connections.pop(connection, None)
        self._strikes = [strike for strike in self._strikes if strike.connection is not connection]

    async def heal(self, strike: RelayStrike) -> None:
        """Remove one fault, and listen again if it had closed the port."""
        if strike in self._strikes:
            self._strikes.remove(strike)
        if strike.expected and strike.connection is None:
            self._gate.done(strike.expected)
        if strike.fault.closes_port:
            if not any(other.fault.closes_port for other in self._strikes):
                await self.listen()
            return
        whole = isinstance(strike.spot, WholeLink)
        for connection in list(self.connections if whole else filter(None, [strike.connection])):
            connection.heal()

    async def close(self) -> None:
        """Close the port and every connection."""
        self._port.close()
        self._gate.shut()
        await asyncio.sleep(0)

    def _accept(self) -> Endpoint:
        connection = self._gate.enter()
        for strike in self._strikes:
            if isinstance(strike.spot, WholeLink) and not strike.fault.closes_port:
                strike.fault.on_pipe(connection.down, 0)
        return connection.accept()

    def _meet(self, strike: RelayStrike, connection: ProxiedConnection) -> None:
        """Arm the fault on this connection's request; later connections wait `AGAIN_S` for the next fault."""
        strike.connection = connection
        strike.fault.on_pipe(connection.up, _from(strike))
        if strike.expected:
            asyncio.get_running_loop().call_later(AGAIN_S, self._gate.done, strike.expected)
        let_through(connection)

    async def _arm(self, strike: RelayStrike) -> None:
        match strike.spot:
            case Downstream(conn, at):
                strike.connection = await self._connection(conn)
                strike.fault.on_pipe(strike.connection.down, at)
            case WholeLink(conn, at):
                if conn is not None:
                    await self._carried(await self._connection(conn), at)
                for connection in self.connections:
                    strike.carried[connection] = connection.down.carried
                    strike.fault.on_pipe(connection.down, connection.down.carried)
            case _:
                strike.expected = self._gate.expect(functools.partial(self._meet, strike))

    async def _connection(self, conn: Address) -> ProxiedConnection:
        """The connection from `conn`; the fake provider can accept it before the relay's own task continues."""
        for connection in list(self.connections):
            await connection.connected()
            if connection.peer == conn:
                return connection
        raise LinkBusyError(f"link {self.name} has no open connection from {conn[0]}:{conn[1]}")

    async def _carried(self, connection: ProxiedConnection, count: int) -> None:
        """Wait until `count` bytes of a connection have passed towards the agent."""
        end_s = connection.now() + ARRIVE_S
        while connection.down.carried < count and not connection.over:
            if connection.now() > end_s:
                raise LinkBusyError(f"link {self.name}: byte {count} did not reach its agent in {ARRIVE_S:g} s")
            await asyncio.sleep(POLL_S)

    async def _shut(self, strike: RelayStrike) -> None:
        """Close the port, end open connections, and prove the refusal."""
        self._port.refuse()
        self._gate.shut()
        strike.prove(None, await self._port.prove_refusal())


def _touches(strike: RelayStrike, connection: ProxiedConnection, pipe: Pipe) -> bool:
    mine = isinstance(strike.spot, WholeLink) or strike.connection is connection
    return mine and pipe is (connection.up if isinstance(strike.spot, Upstream) else connection.down)


def _from(strike: RelayStrike) -> int:
    return 0 if isinstance(strike.spot, WholeLink) else strike.spot.at


class EmbeddedNetwork:
    """Links made of our own relay."""

    name: NetworkName = "embedded"

    def __init__(self, port: PortFactory = Port) -> None:
        """Start without links; `port` makes their listening ports."""
        self._port = port
        self._links: list[RelayLink] = []

    async def open_link(self, name: str, upstream: Address, resets: bool, requests: bool = False) -> RelayLink:
        """Open a link; the relay does not need `resets` and `requests`."""
        link = await RelayLink(name, upstream, self._port).listen()
        self._links.append(link)
        return link

    async def alive(self) -> bool:
        """Always true: the relay runs in this process."""
        return True

    async def __aenter__(self) -> Self:
        """Start nothing."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close every link."""
        for link in self._links:
            with contextlib.suppress(OSError):
                await link.close()
        self._links.clear()
