"""The embedded network: an asyncio TCP relay whose every byte goes through a `Pipe`.

It stands in where no Toxiproxy can be had. Without a fault it can't be told from a cable: no byte is changed, back
pressure passes, and a close passes in order. As through Toxiproxy, a close of either side closes both.
"""

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass
from typing import Literal, Self

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.wire.down import Down
from wedgehog.harness.faults.wire.refuse import Refuse
from wedgehog.harness.network.base import (
    Address,
    Downstream,
    LinkBusy,
    NetworkError,
    NextConnection,
    Proof,
    Spot,
    Upstream,
    WholeLink,
)
from wedgehog.harness.network.pipe import Action, Close, Pipe, Send
from wedgehog.harness.network.probe import refused

HOST = "127.0.0.1"
# SO_LINGER on, for zero seconds: close() sends RST.
RESET = struct.pack("ii", 1, 0)
# Bytes that may wait in a pipe, for a pace or a delay, before its source is no longer read.
HIGH_WATER = 1 << 20


class Leg(asyncio.Protocol):
    """One socket of a passage; what it reads goes into `pipe`, whose far end is `other`."""

    def __init__(self, passage: "Passage", pipe: Pipe) -> None:
        """A leg without a socket yet."""
        self.passage = passage
        self.pipe = pipe
        self.other: Leg | None = None
        self.transport: asyncio.Transport | None = None
        self.ended = False
        self._alarm: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Write through at once: a buffer of our own would make the count of sent bytes a guess."""
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("a leg is a TCP transport")
        self.transport = transport
        transport.set_write_buffer_limits(high=0)

    def data_received(self, data: bytes) -> None:
        """Take what came, and send what may go."""
        self.pipe.feed(data, self.passage.now())
        self.pump()

    def eof_received(self) -> bool:
        """The peer has sent its last byte; its socket stays until the pipe is empty."""
        self.pipe.end(self.passage.now())
        self.pump()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """The socket is gone: what it sent still passes, then the other side closes."""
        self.ended = True
        self.pipe.end(self.passage.now())
        self.pump()
        self.passage.leg_lost()

    def pause_writing(self) -> None:
        """The peer doesn't read: stop reading for it."""
        if self.other:
            self.other.pump()

    def resume_writing(self) -> None:
        """The peer reads again."""
        if self.other:
            self.other.pump()

    @property
    def unwritten(self) -> int:
        """Bytes that the kernel has not taken yet."""
        return self.transport.get_write_buffer_size() if self.transport else 0

    def pump(self) -> None:
        """Send what the pipe lets pass now, ask again when it says, and read only as long as it makes sense."""
        other = self.other
        if other is None or other.transport is None:
            return
        while not other.unwritten and (actions := self.pipe.ready(self.passage.now())):
            self.act(actions)
        if not other.unwritten:
            self.passage.settled(self.pipe)
        self._ask_again()
        self._read_on(not other.unwritten and self.pipe.reading and self.pipe.waiting < HIGH_WATER)

    def act(self, actions: list[Action]) -> None:
        """Do to the other side what its pipe says."""
        if self.other is None:
            return
        for action in actions:
            match action:
                case Send(data):
                    self.other.write(data)
                case Close("rst"):
                    # Reset is a matter of both sockets, as it is through Toxiproxy.
                    self.other.finish("rst")
                    self.finish("rst")
                case Close(how):
                    self.other.finish(how)

    def write(self, data: bytes) -> None:
        """Send bytes, unless the socket is gone."""
        if self.transport and not self.transport.is_closing():
            self.transport.write(data)

    def finish(self, how: Literal["fin", "rst"]) -> None:
        """Close this socket behind what has been written, with FIN or with RST."""
        if self.transport is None or self.transport.is_closing():
            return
        if how == "rst":
            sock = self.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.transport.close()

    def _ask_again(self) -> None:
        if self._alarm:
            self._alarm.cancel()
        at = self.pipe.next_at()
        wait = None if at is None else max(0.0, at - self.passage.now())
        self._alarm = asyncio.get_running_loop().call_later(wait, self.pump) if wait else None

    def _read_on(self, wanted: bool) -> None:
        if self.transport is None or self.transport.is_closing() or self.ended:
            return
        if wanted:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()


class Passage:
    """One connection through the relay: the agent's leg, the fake's leg, and a pipe each way."""

    def __init__(self, link: "RelayLink") -> None:
        """Not connected to the upstream yet."""
        self.link = link
        self.up, self.down = Pipe(), Pipe()
        self.client, self.server = Leg(self, self.up), Leg(self, self.down)
        self.peer: Address | None = None
        self._open = 2
        self._connecting: asyncio.Task[None] | None = None

    def now(self) -> float:
        """The event loop's clock: all that happens here happens in one loop."""
        return asyncio.get_running_loop().time()

    def accept(self) -> Leg:
        """The protocol of a connection that an agent has just made."""
        self._connecting = asyncio.get_running_loop().create_task(self.connect())
        return self.client

    async def connect(self) -> None:
        """Dial the upstream; if it refuses, the agent gets FIN, as through Toxiproxy."""
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.create_connection(lambda: self.server, *self.link.upstream)
        except OSError:
            self.client.finish("fin")
            self.leg_lost()
            return
        host, port = transport.get_extra_info("sockname")[:2]
        self.peer = (host, port)
        self.client.other, self.server.other = self.server, self.client
        self.client.pump()

    def settled(self, pipe: Pipe) -> None:
        """All that a pipe let pass has been handed to the kernel."""
        self.link.look(self, pipe)

    def leg_lost(self) -> None:
        """One socket is gone; with the second the passage is history."""
        self._open -= 1
        if self._open <= 0:
            self.link.passages.discard(self)

    def heal(self) -> None:
        """Take every fault from both pipes; open stalls end with FIN."""
        for leg in (self.client, self.server):
            leg.act(leg.pipe.heal())
            leg.pump()

    def abort(self) -> None:
        """Close both sides."""
        if self._connecting:
            self._connecting.cancel()
        for leg in (self.client, self.server):
            leg.finish("fin")


@dataclass(eq=False, slots=True)
class RelayStrike:
    """One fault armed on a relay link."""

    link: "RelayLink"
    fault: WireFault
    spot: Spot
    hit: "asyncio.Future[Proof]"
    passage: Passage | None = None
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

    def __init__(self, name: str, upstream: Address) -> None:
        """Closed; `listen` opens it."""
        self.name, self.upstream = name, upstream
        self.address: Address = (HOST, 0)
        self.passages: set[Passage] = set()
        self._server: asyncio.Server | None = None
        self._reserved: socket.socket | None = None
        self._strikes: list[RelayStrike] = []

    async def listen(self) -> Self:
        """Open the port, a free one the first time and the same ever after."""
        sock = self._reserved or _bound(self.address)
        self._reserved = None
        self.address = sock.getsockname()[:2]
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, sock=sock)
        return self

    async def admit(self, conn: Address, carried: int) -> None:
        """Each connection has a pipe of its own: nobody waits for anybody."""

    async def strike(self, fault: WireFault, spot: Spot) -> RelayStrike:
        """Arm the fault on the pipes that the spot names."""
        strike = RelayStrike(self, fault, spot, asyncio.get_running_loop().create_future())
        self._strikes.append(strike)
        if isinstance(fault, Refuse | Down):
            await self._shut(strike)
        else:
            self._arm(strike)
        return strike

    def look(self, passage: Passage, pipe: Pipe) -> None:
        """See whether what a pipe has just let pass proves a strike."""
        for strike in self._strikes:
            if strike.hit.done() or not _touches(strike, passage, pipe):
                continue
            if pipe.stopped:
                strike.prove(pipe.carried, f"the relay let {pipe.carried} bytes pass, then {pipe.stopped}")
            elif strike.fault.armed == "at_spot" and pipe.carried > _from(strike):
                strike.prove(pipe.carried, f"the relay has {strike.fault.name} on while bytes pass")

    async def heal(self, strike: RelayStrike) -> None:
        """Take one fault away, and listen again if it had closed the port."""
        if strike in self._strikes:
            self._strikes.remove(strike)
        if isinstance(strike.fault, Refuse | Down):
            if not any(isinstance(other.fault, Refuse | Down) for other in self._strikes):
                await self.listen()
            return
        everyone = isinstance(strike.spot, WholeLink)
        for passage in list(self.passages if everyone else filter(None, [strike.passage])):
            passage.heal()

    async def close(self) -> None:
        """Close the port and every connection."""
        self._stop_listening()
        if self._reserved:
            self._reserved.close()
        for passage in list(self.passages):
            passage.abort()
        await asyncio.sleep(0)

    def _accept(self) -> Leg:
        passage = Passage(self)
        self.passages.add(passage)
        for strike in self._strikes:
            if isinstance(strike.spot, WholeLink) and not isinstance(strike.fault, Refuse | Down):
                strike.fault.on_pipe(passage.down, 0)
            elif isinstance(strike.spot, Upstream | NextConnection) and strike.passage is None:
                strike.passage = passage
                strike.fault.on_pipe(passage.up, _from(strike))
        return passage.accept()

    def _arm(self, strike: RelayStrike) -> None:
        match strike.spot:
            case Downstream(conn, at):
                strike.passage = self._passage(conn)
                strike.fault.on_pipe(strike.passage.down, at)
            case WholeLink():
                for passage in self.passages:
                    strike.fault.on_pipe(passage.down, passage.down.carried)
            case _:
                pass  # the next connection will meet it in _accept

    def _passage(self, conn: Address) -> Passage:
        for passage in self.passages:
            if passage.peer == conn:
                return passage
        raise LinkBusy(f"link {self.name} has no open connection from {conn[0]}:{conn[1]}")

    async def _shut(self, strike: RelayStrike) -> None:
        """Close the port for real, keep its number, end what is open, and knock."""
        self._stop_listening()
        if self._reserved is None:
            self._reserved = _bound(self.address)
        for passage in list(self.passages):
            passage.abort()
        if not await asyncio.to_thread(refused, self.address):
            raise NetworkError(f"link {self.name}: something still answers at port {self.address[1]}")
        strike.prove(None, f"our own connect to {HOST}:{self.address[1]} was refused")

    def _stop_listening(self) -> None:
        if self._server:
            self._server.close()
            self._server = None


def _touches(strike: RelayStrike, passage: Passage, pipe: Pipe) -> bool:
    upwards = isinstance(strike.spot, Upstream | NextConnection)
    mine = isinstance(strike.spot, WholeLink) or strike.passage is passage
    return mine and pipe is (passage.up if upwards else passage.down)


def _from(strike: RelayStrike) -> int:
    match strike.spot:
        case Downstream(at=at) | Upstream(at=at):
            return at
        case _:
            return 0


def _bound(address: Address) -> socket.socket:
    """A socket that holds the port without listening: connects to it are refused, and nobody else can take it."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind(address)
    return sock


class EmbeddedNetwork:
    """Links made of our own relay."""

    name: Literal["toxiproxy", "embedded"] = "embedded"

    def __init__(self) -> None:
        """No link yet."""
        self._links: list[RelayLink] = []

    async def open_link(self, name: str, upstream: Address, resets: bool) -> RelayLink:
        """A new link; the relay needs no warning that an RST may come."""
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
