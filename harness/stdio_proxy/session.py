"""The harness's side of `wedgehog-pipe`: a control server that gives every pipe a link for each direction.

```
 agent ═▶ wedgehog-pipe ══ link "in" ══▶ wedgehog-pipe ═▶ COMMAND        both links' upstream end is the sending one,
 agent ◀═ wedgehog-pipe ◀══ link "out" ══ wedgehog-pipe ◀═ COMMAND       so that every fault of a pipe is downstream
```

The process in the middle is at both ends of both links. It is also the gate: it can stop writing at any byte until a
fault has been armed, which is what makes n bytes asked n bytes received.
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
"""For a pipe to say that it has ended, when its run is over."""
CLOSING_S = 10.0
"""For what a closed pipe still has to tell, and for its links to close."""
StreamName = Literal["out", "in"]
"""COMMAND's stdout, or its stdin."""


class StreamEnd(NamedTuple):
    """A link ended by itself: with FIN or RST, and after how many bytes."""

    how: str
    received: int


@dataclass(eq=False, slots=True)
class HoldPoint:
    """Somebody wants a direction to stand: at a byte, or where it is."""

    byte: int | None
    reached: "asyncio.Future[int | None]"
    """Where it stands; None: the pipe was closed before it got there."""


@dataclass(eq=False)
class Direction:
    """One way through a pipe."""

    way: StreamName
    link: Link
    say: Callable[..., None]
    conn: Address = (HOST, 0)
    """The sending end of the link, as the link's upstream knows it."""
    ended: "asyncio.Future[StreamEnd]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """How the link ended before COMMAND did."""
    passed: int | None = None
    """Bytes delivered, once the pipe is closed; None: unknown, the process in the middle was killed."""
    _stops: list[HoldPoint] = field(default_factory=list)
    _asked: int = 0
    _closed: bool = False

    def stop(self, byte: int | None = None) -> HoldPoint:
        """Let it write into its link up to `byte` and no further (None: not a byte more), until `go`."""
        stop = HoldPoint(byte, asyncio.get_running_loop().create_future())
        if self._closed:
            stop.reached.set_result(None)
            return stop
        self._stops.append(stop)
        self._tell()
        return stop

    def go(self, stop: HoldPoint) -> None:
        """Nobody waits at this stop any more."""
        if stop in self._stops:
            self._stops.remove(stop)
            self._tell()

    @contextlib.asynccontextmanager
    async def held(self, byte: int | None = None) -> AsyncIterator[int | None]:
        """While it stands; where."""
        stop = self.stop(byte)
        try:
            yield await stop.reached
        finally:
            self.go(stop)

    def _tell(self) -> None:
        """Only the answer to the last word counts: an older one may tell of a stop that it has left since."""
        self._asked += 1
        bytes_ = [stop.byte for stop in self._stops]
        until = "none" if not bytes_ else "now" if None in bytes_ else min(byte for byte in bytes_ if byte is not None)
        self.say("until", self.way, until, self._asked)

    def stands(self, byte: int, asked: int) -> None:
        """It says that it stands."""
        for stop in self._stops if asked == self._asked else ():
            if not stop.reached.done() and (stop.byte is None or stop.byte <= byte):
                stop.reached.set_result(byte)

    def close(self, passed: int | None) -> None:
        """The pipe is gone: what was waited for never comes."""
        self.passed, self._closed = passed, True
        for stop in self._stops:
            if not stop.reached.done():
                stop.reached.set_result(None)


@dataclass(eq=False)
class StdioSession:
    """One `wedgehog-pipe` that runs."""

    name: str
    pid: int
    ways: dict[StreamName, Direction]
    child: int = 0
    status: int | None = None
    """COMMAND's exit code, or minus the signal that ended it; None: it still runs, or nobody knows."""
    abandoned: bool = False
    """Whether nobody reads COMMAND's stdout any more."""
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """The pipe is gone, with all that it had to say."""


class StdioObserver(Protocol):
    """Who hears of pipes."""

    async def opened(self, pipe: StdioSession) -> None:
        """It is connected; both ways stand before their first byte until this returns."""

    async def closed(self, pipe: StdioSession) -> None:
        """It has ended; its links are closed when this returns."""

    def trouble(self, what: str) -> None:
        """A pipe could not be made, or broke, and no fault of the plan did it."""


class StdioServer:
    """The control server of one run. An async context manager."""

    def __init__(self, network: Network, resets: Callable[[str], bool], watcher: StdioObserver) -> None:
        """`resets(link)` says whether an RST may be struck on the link of that name."""
        self._network, self._resets, self._watcher = network, resets, watcher
        self._secret = secrets.token_hex(8)
        self._calls: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self.address = ""
        """`host:port:secret`, for `wedgehog-pipe`."""

    async def __aenter__(self) -> Self:
        """Listen."""
        self._server = await asyncio.start_server(self._called, HOST, 0)
        port = self._server.sockets[0].getsockname()[1]
        self.address = f"{HOST}:{port}:{self._secret}"
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Leave: pipes that still run end."""
        self._server.close()
        await self._gone(GOODBYE_S)  # the agent is gone, and its pipes with it: they only have to say so
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
            await _Call(reader, writer, self._secret).serve(self._network, self._resets, self._watcher)
        except NetworkError as wrong:
            self._watcher.trouble(f"a pipe could not be opened: {wrong}")
        except (OSError, ValueError, asyncio.IncompleteReadError):
            pass  # it left in the middle of a word
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


class _Call:
    """One control connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, secret: str) -> None:
        self._reader, self._writer, self._secret = reader, writer, secret

    async def serve(self, network: Network, resets: Callable[[str], bool], watcher: StdioObserver) -> None:
        """From the first word to the last."""
        word, *rest = await self._line()
        if word != "open" or len(rest) != 5 or not hmac.compare_digest(rest[0], self._secret):
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
            if await self._connected(pipe, watcher):
                await self._through(pipe, watcher)

    def _say(self, *words: object) -> None:
        """One line; a pipe that has gone does not mind."""
        if not self._writer.is_closing():
            self._writer.write(" ".join(map(str, words)).encode() + b"\n")

    async def _connected(self, pipe: StdioSession, watcher: StdioObserver) -> bool:
        word, *rest = await self._line()
        if word == "trouble":
            watcher.trouble(" ".join(rest))
        if word != "child":
            return False
        pipe.child = int(rest[0])
        for direction, port in zip(pipe.ways.values(), rest[1:], strict=True):
            direction.conn = (HOST, int(port))
            await direction.link.admit(direction.conn, 0)
        return True

    async def _through(self, pipe: StdioSession, watcher: StdioObserver) -> None:
        """Listen to it until it is closed; how it is harmed is decided beside that."""
        opening = asyncio.get_running_loop().create_task(self._open(pipe, watcher))
        try:
            await self._listen(pipe, watcher)
        finally:
            for direction in pipe.ways.values():
                direction.close(direction.passed)
            pipe.closed.set()
            try:
                await opening
            finally:
                await watcher.closed(pipe)

    async def _open(self, pipe: StdioSession, watcher: StdioObserver) -> None:
        try:
            async with pipe.ways["out"].held(0), pipe.ways["in"].held(0):
                await watcher.opened(pipe)
        except NetworkError as wrong:
            watcher.trouble(f"the pipe {pipe.name} could not be struck: {wrong}")

    async def _listen(self, pipe: StdioSession, watcher: StdioObserver) -> None:
        while True:
            match await self._line():
                case ["stands", ("out" | "in") as way, byte, asked]:
                    pipe.ways[way].stands(int(byte), int(asked))
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
                    watcher.trouble(" ".join(what))
                case _:
                    return

    async def _line(self) -> list[str]:
        """The words of the next line; an empty one at the end."""
        try:
            return (await self._reader.readline()).decode().split() or [""]
        except ConnectionError:
            return [""]
