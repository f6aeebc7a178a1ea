"""The fake provider's server: it accepts connections, reports facts to an observer, and writes compiled replies.

>>> async with FakeLLM(script, observer) as llm:  # doctest: +SKIP
...     client = Anthropic(base_url=llm.url, api_key="any")
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Final, Literal, Self

from wedgehog.fake_llm.clock import ProviderClock, RealClock
from wedgehog.fake_llm.connection import ROOM, Connection
from wedgehog.fake_llm.delivery import Delivery
from wedgehog.fake_llm.dialects.base import Dialect, Refusal
from wedgehog.fake_llm.http_request import Incoming
from wedgehog.fake_llm.ids import fingerprint
from wedgehog.fake_llm.memory import Memories
from wedgehog.fake_llm.observer import (
    Conn,
    ConnectionClosed,
    ConnectionOpened,
    Gate,
    Observer,
    Point,
    RequestSeen,
    Silent,
    WriteEnded,
)
from wedgehog.fake_llm.render_cache import RenderCache
from wedgehog.fake_llm.request import Request, json_object
from wedgehog.fake_llm.respond import RequestOutcome, Responder
from wedgehog.fake_llm.routing import dialect_of, session_of
from wedgehog.fake_llm.script.protocol import Script
from wedgehog.fake_llm.wire_reply import WireReply

_CLOSE_WITHIN_S: Final = 5.0
_TOO_LARGE: Final = 413


class FakeLLM:
    """A provider on a local port; use it as an async context manager.

    `strict`: refuse what the real provider refuses (else only report it). `models`: the names that exist (None: any).
    `close_after(call)`: True if that call's reply ends its connection. `observer` may be replaced at any time.
    """

    def __init__(
        self,
        script: Script,
        observer: Observer | None = None,
        *,
        strict: bool = True,
        models: Sequence[str] | None = None,
        clock: ProviderClock | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        listens: bool = True,
        close_after: Callable[[int], bool] = lambda call: False,
        waits_for_close: bool = False,
    ) -> None:
        """Port 0 takes a free port. Without `listens` the caller accepts connections, each with `connection()`."""
        self.script = script
        self.observer: Observer = observer or Silent()
        self.host = host
        self.port = port
        self.close_after = close_after
        self.waits_for_close = waits_for_close
        """Let a client that asked for `Connection: close` close first: our close would hide when it hangs up."""
        self._strict = strict
        self._models = models
        self._clock = clock or RealClock()
        self._memories = Memories()
        self._cache = RenderCache()
        self._room = bytearray(ROOM)
        self._calls = 0
        self._connected = 0
        self._listens = listens
        self.connections: dict[Connection, None] = {}  # oldest first: a set has another order in each process
        self._listener: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://{self.host}:{self.port}"

    async def __aenter__(self) -> Self:
        """Listen."""
        if self._listens:
            loop = asyncio.get_running_loop()
            self._listener = await loop.create_server(self.connection, self.host, self.port, backlog=1024)
            self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop listening and drop every connection, held replies included; leaves no task."""
        if self._listener:
            self._listener.close()
        dropped = list(self.connections)
        for connection in dropped:
            connection.transport.abort()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_WITHIN_S):
                while any(one.is_active for one in dropped):  # noqa: ASYNC110  there is no event to wait for
                    await asyncio.sleep(0)

    def connection(self) -> Connection:
        """Return the asyncio protocol that answers one client."""
        return Connection(self._opened, self._answer, self._closed, self._room)

    def _opened(self, connection: Connection) -> Conn:
        self._connected += 1
        peer = connection.transport.get_extra_info("peername") or ("", 0)
        conn = Conn(self._connected, (peer[0], peer[1]))
        self.connections[connection] = None
        self.observer.saw(ConnectionOpened(conn))
        return conn

    def _closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        self.observer.saw(ConnectionClosed(connection.conn, connection.by_us))

    async def _answer(self, connection: Connection, incoming: Incoming) -> None:
        self._calls += 1
        request = self._read(incoming)
        outcome = self._outcome(request, dialect_of(request), connection.conn, incoming)
        await self._deliver(request, outcome, connection)
        framed = not incoming.head.http_1_0 and incoming.trouble is None and not self.close_after(request.call)
        connection.by_us = outcome.image.closes and not (framed and self.waits_for_close)

    def _read(self, incoming: Incoming) -> Request:
        head = incoming.head
        session, path = session_of(head.path, fingerprint(head.key))
        return Request(
            self._calls,
            head.method,
            path,
            head.headers,
            incoming.body,
            json_object(incoming.body),
            head.query,
            self._memories.of(session),
            session,
            head.key,
        )

    def _outcome(self, request: Request, dialect: Dialect, conn: Conn, incoming: Incoming) -> RequestOutcome:
        conversation = None
        if request.document is not None and dialect.asks_for_reply(request):
            conversation = dialect.parse(request)
        self.observer.saw(
            RequestSeen(
                call=request.call,
                conn=conn,
                wire=dialect.WIRE,
                path=incoming.head.target_without_key,
                method=request.method,
                key=fingerprint(request.key),
                conversation=conversation,
                body=request.body,
                size=len(request.body),
                user_agent=request.headers.get("User-Agent", ""),
                session=request.session,
            )
        )
        trouble = incoming.trouble
        responder = Responder(
            self.script,
            self._strict,
            self._models,
            self._clock.wall(),
            self._cache,
            closes=self.close_after(request.call) or not incoming.head.keep_alive or trouble is not None,
            http_1_0=incoming.head.http_1_0,
        )
        if trouble is not None:
            refusal = dialect.TOO_LARGE if trouble.status == _TOO_LARGE else Refusal(trouble.status, trouble.message)
            return responder.refused(request, dialect, refusal)
        return responder.respond(request, dialect, conversation)

    async def _deliver(self, request: Request, outcome: RequestOutcome, line: Connection) -> None:
        for fact in outcome.facts:
            self.observer.saw(fact)
        image = outcome.image
        takes_time = bool(outcome.delay_s) or image.paced
        gate = self._gate(request.call, takes_time=takes_time)
        ask = partial(_asked, gate, request.call, line.conn, line.carried, image) if gate else None
        delivery = Delivery(image, line.write, ask, self._clock)
        try:
            if gate or takes_time:
                await line.can_wait()
            await delivery.run(outcome.delay_s)
        except BaseException:
            self.observer.saw(_ended(request.call, delivery, image, outcome.stop, "hung_up"))
            line.transport.abort()
            raise
        self.observer.saw(_ended(request.call, delivery, image, outcome.stop, "complete"))

    def _gate(self, call: int, *, takes_time: bool) -> Gate | None:
        """Return the observer's gate for this reply, or None if the reply passes without it."""
        gate: Gate | None = getattr(self.observer, "gate", None)
        passes: Callable[[int], bool] | None = getattr(self.observer, "passes", None)
        return None if gate and passes and not takes_time and passes(call) else gate


def _asked(gate: Gate, call: int, conn: Conn, carried: int, image: WireReply, at: int) -> Awaitable[Sequence[int]]:
    size = -1 if image.told.endless else image.size
    ends = image.told.ends if image.told.stream else ()
    return gate(Point(call, conn, carried, len(image.head), ends, size, at, image.told.stream))


def _ended(
    call: int, delivery: Delivery, image: WireReply, stop: str, how: Literal["complete", "hung_up"]
) -> WriteEnded:
    return WriteEnded(call, delivery.head, delivery.body, delivery.tokens, image.told.marks, how, stop)
