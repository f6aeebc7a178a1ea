"""The harness's side of `wedgehog-pipe`: a control server that opens one link per direction of each pipe.

```
 agent ═▶ wedgehog-pipe ══ link "in" ══▶ wedgehog-pipe ═▶ COMMAND        the upstream end of both links sends,
 agent ◀═ wedgehog-pipe ◀══ link "out" ══ wedgehog-pipe ◀═ COMMAND       so that every fault is downstream
```

The process in the middle has both ends of both links. It can stop sending at any byte until a fault is armed, so that
a fault takes effect at exactly that byte.
"""

import asyncio
import contextlib
import hmac
import secrets
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, Self

from wedgehog.harness.network.base import Address, Link, Network, NetworkError
from wedgehog.harness.network.ports import HOST

GOODBYE_S = 1.0
"""How long a pipe may take to report its end when the run is over."""
CLOSING_S = 10.0
"""How long a closed pipe may take for its last reports and for closing its links."""
StreamName = Literal["out", "in"]
"""COMMAND's stdout, or its stdin."""


class StreamEnd(NamedTuple):
    """How a link ended by itself (fin or rst), and after how many bytes."""

    how: str
    received: int


@dataclass(eq=False, slots=True)
class HoldPoint:
    """A request to stop a direction at a byte, or at once if `byte` is None."""

    byte: int | None
    reached: "asyncio.Future[int | None]"
    """The byte at which it stopped; None: the pipe was closed before."""


@dataclass(eq=False)
class Direction:
    """One direction of a pipe."""

    way: StreamName
    link: Link
    say: Callable[..., None]
    conn: Address = (HOST, 0)
    """The sending end of the link, as seen by the link's upstream."""
    ended: "asyncio.Future[StreamEnd]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """How the link ended, if it ended before COMMAND."""
    passed: int | None = None
    """Bytes delivered, once the pipe is closed; None if unknown, because wedgehog-pipe was killed."""
    _stops: list[HoldPoint] = field(default_factory=list)
    _asked: int = 0
    _closed: bool = False

    def stop(self, byte: int | None = None) -> HoldPoint:
        """Stop sending after `byte` (None: at once), until `go`."""
        stop = HoldPoint(byte, asyncio.get_running_loop().create_future())
        if self._closed:
            stop.reached.set_result(None)
            return stop
        self._stops.append(stop)
        self._send_stop()
        return stop

    def go(self, stop: HoldPoint) -> None:
        """Remove this stop."""
        if stop in self._stops:
            self._stops.remove(stop)
            self._send_stop()

    @contextlib.asynccontextmanager
    async def held(self, byte: int | None = None) -> AsyncIterator[int | None]:
        """Stop for the length of the block; yields the byte, or None if the pipe was closed before."""
        stop = self.stop(byte)
        try:
            yield await stop.reached
        finally:
            self.go(stop)

    def _send_stop(self) -> None:
        """Send the nearest stop with a new number; replies with older numbers are ignored."""
        self._asked += 1
        bytes_ = [stop.byte for stop in self._stops]
        until = "none" if not bytes_ else "now" if None in bytes_ else min(byte for byte in bytes_ if byte is not None)
        self.say("until", self.way, until, self._asked)

    def stopped(self, byte: int, asked: int) -> None:
        """Handle the report that it has stopped at `byte`, in reply to the stop number `asked`."""
        for stop in self._stops if asked == self._asked else ():
            if not stop.reached.done() and (stop.byte is None or stop.byte <= byte):
                stop.reached.set_result(byte)

    def close(self, passed: int | None) -> None:
        """Resolve all open stops: the pipe is closed."""
        self.passed, self._closed = passed, True
        for stop in self._stops:
            if not stop.reached.done():
                stop.reached.set_result(None)


@dataclass(eq=False)
class StdioSession:
    """One running `wedgehog-pipe`."""

    name: str
    pid: int
    ways: dict[StreamName, Direction]
    child: int = 0
    status: int | None = None
    """COMMAND's exit code, or the negative number of the signal that ended it; None if it runs or that is unknown."""
    abandoned: bool = False
    """Whether the reader of COMMAND's stdout has closed it."""
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the pipe is closed and its last reports are handled."""


class StdioObserver(Protocol):
    """Receives the events of pipes."""

    async def opened(self, pipe: StdioSession) -> None:
        """The pipe is connected; both directions stop at byte 0 until this returns."""

    async def closed(self, pipe: StdioSession) -> None:
        """The pipe has ended; its links are closed after this returns."""

    def trouble(self, what: str) -> None:
        """A pipe failed without a fault of the plan."""


class StdioServer:
    """The control server of one run. An async context manager."""

    def __init__(self, network: Network, resets: Callable[[str], bool], observer: StdioObserver) -> None:
        """`resets(link)` says whether an RST may be injected on the link of that name."""
        self._network, self._resets, self._observer = network, resets, observer
        self._secret = secrets.token_hex(8)
        self._calls: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.address = ""
        """`host:port:secret`, for `wedgehog-pipe`."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._called, HOST, 0)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"{HOST}:{port}:{self._secret}"
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._server.close()
        await self._gone(GOODBYE_S)  # the agent has ended, so the pipes have too; this awaits their reports
        for writer in self._calls.values():
            writer.transport.abort()
        await self._gone(CLOSING_S)
        for task in self._calls:
            task.cancel()
        await asyncio.gather(*self._calls, return_exceptions=True)

    async def _gone(self, within_s: float) -> None:
        if self._calls:
            await asyncio.wait(self._calls, timeout=within_s)

    def _called(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._calls[task] = writer
        task.add_done_callback(self._calls.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _ProxyConnection(reader, writer, self._observer).serve(self._secret, self._network, self._resets)
        except NetworkError as wrong:
            self._observer.trouble(f"a pipe could not be opened: {wrong}")
        except (OSError, ValueError, asyncio.IncompleteReadError):
            pass  # the connection ended inside a line
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


class _ProxyConnection:
    """One control connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, observer: StdioObserver) -> None:
        self._reader, self._writer, self._observer = reader, writer, observer

    async def serve(self, secret: str, network: Network, resets: Callable[[str], bool]) -> None:
        """Handle the connection until it ends."""
        word, *rest = await self._line()
        if word != "open" or len(rest) != 5 or not hmac.compare_digest(rest[0], secret):
            return
        _, name, pid, *ports = rest
        async with contextlib.AsyncExitStack() as stack:
            link = f"ipc:{name}"
            links: list[Link] = []
            for port in ports:
                links.append(await network.open_link(link, (HOST, int(port)), resets(link)))
                stack.push_async_callback(links[-1].close)
            out, into = Direction("out", links[0], self._say), Direction("in", links[1], self._say)
            pipe = StdioSession(name, int(pid), {"out": out, "in": into})
            self._say("links", *(f"{it.address[0]}:{it.address[1]}" for it in links))
            if await self._connected(pipe):
                await self._through(pipe)

    def _say(self, *words: object) -> None:
        """Send one line, unless the connection is closed."""
        if not self._writer.is_closing():
            self._writer.write(" ".join(map(str, words)).encode() + b"\n")

    async def _connected(self, pipe: StdioSession) -> bool:
        word, *rest = await self._line()
        if word == "trouble":
            self._observer.trouble(" ".join(rest))
        if word != "child":
            return False
        pipe.child = int(rest[0])
        for direction, port in zip(pipe.ways.values(), rest[1:], strict=True):
            direction.conn = (HOST, int(port))
            await direction.link.admit(direction.conn, 0)
        return True

    async def _through(self, pipe: StdioSession) -> None:
        """Handle its reports until it is closed; the observer arms faults in a task of its own."""
        opening = asyncio.get_running_loop().create_task(self._open(pipe))
        try:
            await self._listen(pipe)
        finally:
            for direction in pipe.ways.values():
                direction.close(direction.passed)
            pipe.closed.set()
            try:
                await opening
            finally:
                await self._observer.closed(pipe)

    async def _open(self, pipe: StdioSession) -> None:
        try:
            async with pipe.ways["out"].held(0), pipe.ways["in"].held(0):
                await self._observer.opened(pipe)
        except NetworkError as wrong:
            self._observer.trouble(f"the pipe {pipe.name} could not get its faults: {wrong}")

    async def _listen(self, pipe: StdioSession) -> None:
        while True:
            match await self._line():
                case ["stopped", ("out" | "in") as way, byte, asked]:
                    pipe.ways[way].stopped(int(byte), int(asked))
                case ["ended", ("out" | "in") as way, how, byte]:
                    if not pipe.ways[way].ended.done():
                        pipe.ways[way].ended.set_result(StreamEnd(how, int(byte)))
                case ["abandoned"]:
                    pipe.abandoned = True
                case ["exit", status]:
                    pipe.status = int(status)
                case ["closed", out, into]:
                    pipe.ways["out"].passed, pipe.ways["in"].passed = int(out), int(into)
                    return
                case ["trouble", *what]:
                    self._observer.trouble(" ".join(what))
                case _:
                    return

    async def _line(self) -> list[str]:
        """The words of the next line; an empty one at the end."""
        try:
            return (await self._reader.readline()).decode().split() or [""]
        except ConnectionError:
            return [""]
