"""The fake provider's server: it accepts connections, tells what it saw, and writes compiled replies.

>>> async with FakeLLM(script, observer) as llm:  # doctest: +SKIP
...     client = Anthropic(base_url=llm.url, api_key="any")
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Final, Literal, Self

from aiohttp import HttpVersion11, StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler, RequestPayloadError

from wedgehog.fake_llm.clock import Clock, RealClock
from wedgehog.fake_llm.delivery import Delivery
from wedgehog.fake_llm.dialects.base import Dialect, Refusal
from wedgehog.fake_llm.ids import fingerprint
from wedgehog.fake_llm.image import Image
from wedgehog.fake_llm.observer import (
    Conn,
    ConnectionClosed,
    ConnectionOpened,
    Observer,
    Point,
    ReplyEnded,
    RequestSeen,
    Silent,
)
from wedgehog.fake_llm.request import Request, json_object
from wedgehog.fake_llm.script import Script
from wedgehog.fake_llm.settle import Settled, Settler, asks_for_reply, dialect_of

_LARGEST_BODY: Final = 64 * 2**20
_LONGEST_HEADER: Final = 64 * 2**10
_CLOSE_WITHIN_S: Final = 5.0
_NEVER_S: Final = 1e8  # where a link can be reset, the server must not close first
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class _Line:
    """A connection, and how many bytes it has carried towards the client."""

    def __init__(self, conn: Conn, transport: asyncio.Transport) -> None:
        self.conn = conn
        self.carried = 0
        self.transport = transport
        self.by_us = False

    def write(self, data: bytes) -> None:
        self.carried += len(data)
        self.transport.write(data)


class _Written(web.StreamResponse):
    """Tells aiohttp that a reply has been written already, and if its connection may be used again."""

    def __init__(self, keep_alive: bool) -> None:
        super().__init__()
        self._keep_alive = keep_alive

    async def prepare(self, request: web.BaseRequest) -> None:
        """Write nothing."""

    async def write_eof(self, data: object = b"") -> None:
        """Write nothing."""


class _Connections(web.Server):
    """aiohttp's low-level server with an ear on connections."""

    def __init__(self, llm: FakeLLM) -> None:
        super().__init__(
            llm._handle,
            request_factory=_large_request,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=_NEVER_S,
            max_field_size=_LONGEST_HEADER,
            max_line_size=_LONGEST_HEADER,
        )
        self.lines: dict[RequestHandler, _Line] = {}
        self._llm = llm
        self._count = 0

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._count += 1
        peer = transport.get_extra_info("peername") or ("", 0)
        line = self.lines[handler] = _Line(Conn(self._count, (peer[0], peer[1])), transport)
        self._llm.observer.saw(ConnectionOpened(line.conn))

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        line = self.lines.pop(handler, None)
        if line:
            self._llm.observer.saw(ConnectionClosed(line.conn, line.by_us))


class FakeLLM:
    """A provider on a local port; use it as an async context manager.

    `strict`: histories that the real provider would refuse are refused (else recorded only). `models`: the names
    that exist (None: any). `close_after(call)`: if that call's reply says `Connection: close` and ends the
    connection; never, by default. `observer` may be replaced at any time.
    """

    def __init__(
        self,
        script: Script,
        observer: Observer | None = None,
        *,
        strict: bool = True,
        models: Sequence[str] | None = None,
        clock: Clock | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        """Port 0 takes a free one; read it from `port` once the server is open."""
        self.script = script
        self.observer: Observer = observer or Silent()
        self.host = host
        self.port = port
        self.close_after: Callable[[int], bool] = lambda call: False
        self.waits_for_close = False
        """A client that asked for `Connection: close` closes first, as soon as it has the reply: a close of ours would
        hide when it hangs up, and could overtake the reply on a link that resets."""
        self._strict = strict
        self._models = models
        self._clock = clock or RealClock()
        self._calls = 0
        self._connections: _Connections | None = None
        self._listener: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://{self.host}:{self.port}"

    async def __aenter__(self) -> Self:
        """Listen."""
        self._connections = _Connections(self)
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._connections, self.host, self.port, backlog=1024)
        self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening and drop every connection, held replies included; leaves no task."""
        assert self._listener and self._connections, "it was entered"  # noqa: S101
        self._listener.close()
        for line in list(self._connections.lines.values()):
            line.transport.abort()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_WITHIN_S):
                # aiohttp forgets a connection when its task has ended, and tells nobody.
                while self._connections.connections:  # noqa: ASYNC110  there is no event to wait for
                    await asyncio.sleep(0)

    async def _handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        assert self._connections is not None  # noqa: S101
        line = self._connections.lines[incoming.protocol]
        if incoming.headers.get("Expect", "").lower() == "100-continue":
            line.write(_CONTINUE)
        body, trouble = await _read(incoming)
        self._calls += 1
        request = Request(self._calls, incoming.method, incoming.path, incoming.headers, body, json_object(body))
        dialect = dialect_of(request)
        settled = self._settle(request, dialect, line.conn, incoming, trouble)
        await self._deliver(request, settled, line)
        framed = incoming.version >= HttpVersion11 and trouble is None and not self.close_after(request.call)
        line.by_us = settled.image.closes and not (framed and self.waits_for_close)
        return _Written(keep_alive=not line.by_us)

    def _settle(
        self,
        request: Request,
        dialect: Dialect,
        conn: Conn,
        incoming: web.BaseRequest,
        trouble: Refusal | None,
    ) -> Settled:
        conversation = None
        if request.document is not None and asks_for_reply(request, dialect):
            conversation = dialect.parse(request.document)
        self.observer.saw(
            RequestSeen(
                call=request.call,
                conn=conn,
                wire=dialect.WIRE,
                path=incoming.path_qs,
                method=request.method,
                key=fingerprint(request.key),
                conversation=conversation,
                body=request.body,
                size=len(request.body),
                user_agent=request.headers.get("User-Agent", ""),
            )
        )
        settler = Settler(
            self.script,
            self._strict,
            self._models,
            self._clock.wall(),
            closes=self.close_after(request.call) or not incoming.keep_alive or trouble is not None,
            http_1_0=incoming.version < HttpVersion11,
        )
        return settler.refused(request, dialect, trouble) if trouble else settler.settle(request, dialect, conversation)

    async def _deliver(self, request: Request, settled: Settled, line: _Line) -> None:
        for fact in settled.facts:
            self.observer.saw(fact)
        image = settled.image
        point = partial(_point, request.call, line.conn, line.carried, image)
        delivery = Delivery(image, line.write, lambda at: self.observer.gate(point(at)), self._clock)
        ended = partial(_ended, request.call, delivery, image, settled.stop)
        try:
            if settled.delay_s:
                await self._clock.sleep(settled.delay_s)
            await delivery.run()
        except BaseException:
            self.observer.saw(ended("hung_up"))
            line.transport.abort()
            raise
        self.observer.saw(ended("complete"))


def _point(call: int, conn: Conn, carried: int, image: Image, at: int) -> Point:
    size = -1 if image.endless else image.size
    ends = image.ends if image.stream else ()
    return Point(call, conn, carried, len(image.head), ends, size, at, image.stream)


def _ended(call: int, delivery: Delivery, image: Image, stop: str, how: Literal["complete", "hung_up"]) -> ReplyEnded:
    return ReplyEnded(call, delivery.head, delivery.body, delivery.tokens, image.marks, how, stop)


def _large_request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_LARGEST_BODY)


async def _read(incoming: web.BaseRequest) -> tuple[bytes, Refusal | None]:
    """Read the whole body, or say why that cannot be done."""
    try:
        return await incoming.read(), None
    except web.HTTPRequestEntityTooLarge:
        return b"", Refusal(413)
    except (RequestPayloadError, HttpProcessingError) as broken:
        return b"", Refusal(400, f"The request body could not be decoded: {broken}")
