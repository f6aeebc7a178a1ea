"""A TCP server of the user's own behind a link: its bytes pass through this process, which can hold them at any byte.

```
agent ═▶ link ═▶ BackendProxy ─────────────────────────────▶ server      bytes to the agent: faults on the first link
                     └═ request link ═▶ BackendProxy ─▶ server           bytes to the server: faults on a second one
```

The second link exists only if a fault is planned for the bytes to the server. This process has both of its ends, and
sends on the upstream end of each link, so that every fault acts on bytes that it has not sent yet.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple, Protocol, Self, cast

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.network.base import Address, Link
from wedgehog.harness.network.pipe import Pipe
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.network.proxied_connection import close
from wedgehog.harness.record.clock import first_of

CHUNK = 1 << 16
CROSSING_S = 1.0
"""How long the last bytes to the server may take through the request link after the agent has closed."""
READING_S = 0.2
"""On a link whose closes are resets, the agent has this time to read the last bytes before the close."""

Way = Literal["down", "up"]
"""To the agent, or to the server."""
Closer = Literal["agent", "backend"]
HoldAction = tuple[int, Callable[[], Awaitable[None]]]
"""A byte, and what to do before it is sent."""


class Limit(NamedTuple):
    """A fault that is armed on the link from this byte on, until it is healed."""

    fault: WireFault
    at: int
    healed: asyncio.Event


@dataclass(eq=False)
class BackendStream:
    """One direction of a connection, from the reader of one side to the sending end of its link."""

    way: Way
    link: Link | None
    """None: bytes to the server that cross no link."""
    writer: asyncio.StreamWriter
    carried: int = 0
    """The bytes that were sent. A fault may keep the last ones from the other side."""
    stops: list[HoldAction] = field(default_factory=list)
    limits: list[Limit] = field(default_factory=list)
    _crossing: Pipe = field(default_factory=Pipe)
    """The same faults act on it as on the link, so that it tells what has arrived."""

    @property
    def conn(self) -> Address:
        """The sending end, as the link's upstream knows it."""
        host, port = self.writer.get_extra_info("peername")[:2]
        return host, port

    @property
    def arrived(self) -> int:
        """The bytes that have reached the other side; those that a fault makes late count when they are due."""
        self._pass()
        return self._crossing.carried

    def meets(self, limit: Limit) -> None:
        """A fault is armed on the link."""
        self._pass()
        self.limits.append(limit)
        limit.fault.on_pipe(self._crossing, limit.at)

    def _pass(self, data: bytes = b"") -> None:
        """Bytes are sent; all that is due by now arrives."""
        now = asyncio.get_running_loop().time()
        if any(limit.healed.is_set() for limit in self.limits):
            self.limits = [limit for limit in self.limits if not limit.healed.is_set()]
            self._crossing.heal([partial(limit.fault.on_pipe, at=limit.at) for limit in self.limits])
        self._crossing.feed(data, now)
        self._crossing.skip(now)

    def at(self, byte: int, act: Callable[[], Awaitable[None]]) -> None:
        """Do this when `byte` bytes have been sent and the next one is here; it is held meanwhile."""
        self.stops.append((byte, act))

    async def send(self, data: bytes) -> None:
        """Send it all, with a halt at each stop."""
        while data:
            await self._halt()
            room = min((byte for byte, _ in self.stops), default=self.carried + CHUNK) - self.carried
            piece, data = data[:room], data[room:]
            if self.link is not None:
                await self.link.admit(self.conn, self.carried)
            self._pass(piece)  # first: written bytes may cross the link before this process goes on
            self.writer.write(piece)
            self.carried += len(piece)
            await self.writer.drain()

    async def _halt(self) -> None:
        while due := next((stop for stop in self.stops if stop[0] <= self.carried), None):
            self.stops.remove(due)
            await due[1]()


@dataclass(eq=False)
class BackendConnection:
    """One connection of the agent to the server."""

    number: int
    """From 1, per run and link."""
    streams: dict[Way, BackendStream]


class BackendObserver(Protocol):
    """Receives the events of connections."""

    def opened(self, link: str, connection: BackendConnection) -> None:
        """The agent has connected, and no byte has passed."""

    def in_hand(self, link: str, connection: BackendConnection) -> None:
        """Bytes of this connection are here and not sent yet: what it must meet is planned now."""

    def closed(self, link: str, connection: BackendConnection, by: Closer | None) -> None:
        """It has ended; None: the run ended it."""

    def trouble(self, what: str) -> None:
        """The server cannot be reached."""


class BackendProxy:
    """Forwards the connections of one link to the user's server. An async context manager."""

    def __init__(self, name: str, server: Address, observer: BackendObserver, *, resets: bool = False) -> None:
        """`name` is the link's, such as `tcp:db`; with `resets` every close on the link is an RST."""
        self.name, self._server, self._observer, self._resets = name, server, observer, resets
        self.link: Link | None = None
        """The agent's link, once it is open."""
        self.request_link: Link | None = None
        self._numbers = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._pairing = asyncio.Lock()
        self._arrived: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        """Listen for both links."""
        self._listening = await asyncio.start_server(self._accepted, HOST, 0)
        self._requests = await asyncio.start_server(self._request_end, HOST, 0)
        self.address, self.request_address = _address(self._listening), _address(self._requests)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for listening in (self._listening, self._requests):
            listening.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _request_end(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._arrived.put_nowait((reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(writer.close)
            try:
                from_server, to_server = await asyncio.open_connection(*self._server)
            except OSError as wrong:
                self._observer.trouble(f"{self.name}: {host_port(self._server)} refused a connection: {wrong.strerror}")
                return
            stack.callback(to_server.close)
            try:
                far, near = await self._request_path(stack)
            except OSError:  # the run is ending: its links are closed
                return
            streams = {
                "down": BackendStream("down", self.link, writer),
                "up": BackendStream("up", self.request_link, near or to_server),
            }
            self._numbers += 1
            connection = BackendConnection(self._numbers, streams)  # type: ignore[arg-type]
            self._observer.opened(self.name, connection)
            by: Closer | None = None
            try:
                crossing = _Crossing(far, to_server) if far is not None else None
                by = await self._pass(connection, reader, from_server, crossing)
            finally:
                self._observer.closed(self.name, connection, by)

    async def _request_path(
        self, stack: contextlib.AsyncExitStack
    ) -> tuple[asyncio.StreamReader | None, asyncio.StreamWriter | None]:
        """Both ends of a new connection through the request link: where bytes come out, and where they go in."""
        if self.request_link is None:
            return None, None
        async with self._pairing:
            far, closing = await asyncio.open_connection(*self.request_link.address)
            stack.callback(closing.close)
            _, near = await self._arrived.get()
            stack.callback(near.close)
        return far, near

    async def _pass(
        self,
        connection: BackendConnection,
        from_agent: asyncio.StreamReader,
        from_server: asyncio.StreamReader,
        crossing: "_Crossing | None",
    ) -> Closer:
        """Forward until one side ends; returns that side."""
        up = asyncio.create_task(self._forward(connection, "up", from_agent))
        down = asyncio.create_task(self._forward(connection, "down", from_server))
        others = {asyncio.create_task(crossing.run())} if crossing else set()
        try:
            done, _ = await asyncio.wait({up, down, *others}, return_when=asyncio.FIRST_COMPLETED)
            if up in done and crossing is not None:
                await crossing.arrived(connection.streams["up"].carried)
            if crossing is not None and crossing.reset:
                _reset(connection.streams["down"].writer)
            if down in done and up not in done and self._resets:
                await asyncio.wait({up}, timeout=READING_S)
            return "agent" if up in done or down not in done else "backend"
        finally:
            for task in (up, down, *others):
                task.cancel()
            await asyncio.gather(up, down, *others, return_exceptions=True)

    async def _forward(self, connection: BackendConnection, way: Way, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                self._observer.in_hand(self.name, connection)
                await connection.streams[way].send(data)


class _Crossing:
    """The far end of the request link: what comes out there goes to the server."""

    def __init__(self, far: asyncio.StreamReader, to_server: asyncio.StreamWriter) -> None:
        self._far, self._to_server = far, to_server
        self._received, self._wanted = 0, -1
        self._whole = asyncio.Event()
        self.reset = False
        """Whether the link was reset, as a fault does."""

    async def run(self) -> None:
        """Forward until the link ends."""
        try:
            while data := await self._far.read(CHUNK):
                self._to_server.write(data)
                self._received += len(data)
                await self._to_server.drain()
                self._look()
        except ConnectionResetError:
            self.reset = True
            _reset(self._to_server)
        self._whole.set()

    async def arrived(self, count: int) -> None:
        """Wait for this many bytes, or the link's end; a proxy passes no half-close on."""
        self._wanted = count
        self._look()
        await first_of(self._whole.wait(), timeout_s=CROSSING_S)

    def _look(self) -> None:
        if self._received == self._wanted:
            self._whole.set()


def host_port(address: Address) -> str:
    """`host:port`"""
    return f"{address[0]}:{address[1]}"


def _reset(writer: asyncio.StreamWriter) -> None:
    close(cast(asyncio.Transport, writer.transport), "rst")


def _address(server: asyncio.Server) -> Address:
    host, port = server.sockets[0].getsockname()[:2]
    return host, port
