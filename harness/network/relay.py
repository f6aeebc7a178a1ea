"""The embedded network: an asyncio TCP relay whose every byte goes through a `Pipe`.

It stands in where no Toxiproxy can be had. Without a fault it can't be told from a cable: no byte is changed, back
pressure passes, and a close passes in order. As through Toxiproxy, a close of either side closes both.
"""

import asyncio
import contextlib
import functools
from dataclasses import dataclass, field
from typing import Literal, Self

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.network.base import (
    Address,
    Downstream,
    LinkBusyError,
    Proof,
    Target,
    Upstream,
    WholeLink,
)
from wedgehog.harness.network.connection_gate import AGAIN_S, ConnectionGate, ExpectedRequest, let_through
from wedgehog.harness.network.pipe import Pipe
from wedgehog.harness.network.port import Port
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.network.proxied_connection import Endpoint, ProxiedConnection

ARRIVE_S = 2.0
"""For bytes that were written before a strike to pass."""
LOOK_S = 0.001


@dataclass(eq=False, slots=True)
class RelayStrike:
    """One fault armed on a relay link."""

    link: "RelayLink"
    fault: WireFault
    spot: Target
    hit: "asyncio.Future[Proof]"
    passage: ProxiedConnection | None = None
    expected: ExpectedRequest | None = None
    """Its place at the door, where it is about a request."""
    carried: dict[ProxiedConnection, int] = field(default_factory=dict)
    """What the connections of the whole link had carried when it was armed; those to come had carried nothing."""
    healed: bool = False

    async def fired(self, timeout_s: float) -> Proof | None:
        """The relay's own count, once the bytes have been handed to the kernel."""
        done, _ = await asyncio.wait([self.hit], timeout=timeout_s)
        return self.hit.result() if done else None

    async def heal(self) -> None:
        """Take the fault away."""
        if not self.healed:
            self.healed = True
            await self.link.heal(self)

    def prove(self, count: int | None, how: str) -> None:
        """The fault has hit."""
        if not self.hit.done():
            self.hit.set_result(Proof(count, how))


class RelayLink:
    """A listening port whose connections go to `upstream`."""

    tells_resets = False

    def __init__(self, name: str, upstream: Address) -> None:
        """Closed; `listen` opens it at a free port."""
        self.name, self.upstream, self.address = name, upstream, (HOST, 0)
        self._door = ConnectionGate(self, everybody=False)
        self._port = Port(name, self.address, self._accept)
        self._strikes: list[RelayStrike] = []

    @property
    def passages(self) -> set[ProxiedConnection]:
        """Its open connections."""
        return self._door.passages

    async def listen(self) -> Self:
        """Open the port, a free one the first time and the same ever after."""
        await self._port.listen()
        self.address = self._port.address
        return self

    async def admit(self, conn: Address, carried: int) -> None:
        """Each connection has a pipe of its own: nobody waits for anybody."""

    async def strike(self, fault: WireFault, spot: Target) -> RelayStrike:
        """Arm the fault on the pipes that the spot names."""
        strike = RelayStrike(self, fault, spot, asyncio.get_running_loop().create_future())
        self._strikes.append(strike)
        if fault.closes_port:
            await self._shut(strike)
        else:
            await self._arm(strike)
        return strike

    def look(self, passage: ProxiedConnection, pipe: Pipe) -> None:
        """See whether a request has come that is to be struck, or what has just passed proves a strike."""
        self._door.look(passage, pipe)
        for strike in self._strikes:
            if strike.hit.done() or not _touches(strike, passage, pipe):
                continue
            if pipe.stopped:
                strike.prove(pipe.carried, f"the relay let {pipe.carried} bytes pass, then {pipe.stopped}")
            elif strike.fault.proof == "flow" and pipe.carried > strike.carried.get(passage, _from(strike)):
                strike.prove(pipe.carried, f"the relay has {strike.fault.name} on while bytes pass")

    def ended(self, passage: ProxiedConnection) -> None:
        """A passage is history, and what was armed on it can't strike any more."""
        self._door.passages.discard(passage)
        self._strikes = [strike for strike in self._strikes if strike.passage is not passage]

    async def heal(self, strike: RelayStrike) -> None:
        """Take one fault away, and listen again if it had closed the port."""
        if strike in self._strikes:
            self._strikes.remove(strike)
        if strike.expected and strike.passage is None:
            self._door.done(strike.expected)
        if strike.fault.closes_port:
            if not any(other.fault.closes_port for other in self._strikes):
                await self.listen()
            return
        everyone = isinstance(strike.spot, WholeLink)
        for passage in list(self.passages if everyone else filter(None, [strike.passage])):
            passage.heal()

    async def close(self) -> None:
        """Close the port and every connection."""
        self._port.close()
        self._door.shut()
        await asyncio.sleep(0)

    def _accept(self) -> Endpoint:
        passage = self._door.enter()
        for strike in self._strikes:
            if isinstance(strike.spot, WholeLink) and not strike.fault.closes_port:
                strike.fault.on_pipe(passage.down, 0)
        return passage.accept()

    def _meet(self, strike: RelayStrike, passage: ProxiedConnection) -> None:
        """Strike this connection's request; who came behind it waits for the next strike a while."""
        strike.passage = passage
        strike.fault.on_pipe(passage.up, _from(strike))
        if strike.expected:
            asyncio.get_running_loop().call_later(AGAIN_S, self._door.done, strike.expected)
        let_through(passage)

    async def _arm(self, strike: RelayStrike) -> None:
        match strike.spot:
            case Downstream(conn, at):
                strike.passage = await self._passage(conn)
                strike.fault.on_pipe(strike.passage.down, at)
            case WholeLink(conn, at):
                if conn is not None:
                    await self._carried(await self._passage(conn), at)
                for passage in self.passages:
                    strike.carried[passage] = passage.down.carried
                    strike.fault.on_pipe(passage.down, passage.down.carried)
            case _:
                strike.expected = self._door.expect(functools.partial(self._meet, strike))

    async def _passage(self, conn: Address) -> ProxiedConnection:
        """The passage that the fake knows as `conn`; the fake may have accepted it before we know that it did."""
        for passage in list(self.passages):
            await passage.connected()
            if passage.peer == conn:
                return passage
        raise LinkBusyError(f"link {self.name} has no open connection from {conn[0]}:{conn[1]}")

    async def _carried(self, passage: ProxiedConnection, count: int) -> None:
        """Wait until so many bytes of a connection have passed towards the agent."""
        end_s = passage.now() + ARRIVE_S
        while passage.down.carried < count and not passage.over:
            if passage.now() > end_s:
                raise LinkBusyError(f"link {self.name}: byte {count} did not reach its agent in {ARRIVE_S:g} s")
            await asyncio.sleep(LOOK_S)

    async def _shut(self, strike: RelayStrike) -> None:
        """Close the port for real, end what is open, and knock."""
        self._port.refuse()
        self._door.shut()
        strike.prove(None, await self._port.prove_refusal())


def _touches(strike: RelayStrike, passage: ProxiedConnection, pipe: Pipe) -> bool:
    upwards = isinstance(strike.spot, Upstream)
    mine = isinstance(strike.spot, WholeLink) or strike.passage is passage
    return mine and pipe is (passage.up if upwards else passage.down)


def _from(strike: RelayStrike) -> int:
    match strike.spot:
        case Downstream(at=at) | Upstream(at=at):
            return at
        case _:
            return 0


class EmbeddedNetwork:
    """Links made of our own relay."""

    name: Literal["toxiproxy", "embedded"] = "embedded"

    def __init__(self) -> None:
        """No link yet."""
        self._links: list[RelayLink] = []

    async def open_link(self, name: str, upstream: Address, resets: bool, requests: bool = False) -> RelayLink:
        """A new link; the relay needs no warning of what may be struck."""
        link = await RelayLink(name, upstream).listen()
        self._links.append(link)
        return link

    async def alive(self) -> bool:
        """It lives as long as we do."""
        return True

    async def __aenter__(self) -> Self:
        """Nothing to start."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close every link."""
        for link in self._links:
            with contextlib.suppress(OSError):
                await link.close()
        self._links.clear()
