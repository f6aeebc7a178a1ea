"""The fake provider's server: it accepts connections, reports facts to an observer, and writes compiled replies.

>>> async with FakeLLM(script, observer) as llm:  # doctest: +SKIP
...     client = Anthropic(base_url=llm.url, api_key="any")
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, Literal

from wedgehog.fake_llm import over_websocket, websocket
from wedgehog.fake_llm.api_key import fingerprint, without_key
from wedgehog.fake_llm.clock import ProviderClock, RealClock
from wedgehog.fake_llm.connection import ROOM, Connection, Listener
from wedgehog.fake_llm.delivery import Delivery
from wedgehog.fake_llm.dialects.anthropic.wire import ANTHROPIC
from wedgehog.fake_llm.dialects.azure import openai_path, with_model
from wedgehog.fake_llm.dialects.base import Dialect, Refusal
from wedgehog.fake_llm.dialects.gemini.wire import GEMINI
from wedgehog.fake_llm.dialects.ollama.wire import OLLAMA
from wedgehog.fake_llm.dialects.openai_chat.wire import OPENAI_CHAT
from wedgehog.fake_llm.dialects.openai_realtime.wire import OPENAI_REALTIME
from wedgehog.fake_llm.dialects.openai_responses.wire import OPENAI_RESPONSES
from wedgehog.fake_llm.http_request import Incoming
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
from wedgehog.fake_llm.reply import Script
from wedgehog.fake_llm.request import Memories, Request, json_object
from wedgehog.fake_llm.respond import RequestOutcome, Responder
from wedgehog.fake_llm.token_endpoint import TokenEndpoint
from wedgehog.fake_llm.wire_reply import WireReply

_TOO_LARGE: Final = 413

DIALECTS: Final[tuple[Dialect, ...]] = (ANTHROPIC, GEMINI, OLLAMA, OPENAI_CHAT, OPENAI_RESPONSES, OPENAI_REALTIME)
DEFAULT_SESSION: Final = "default"

_IN_SESSION: Final = re.compile(r"/s/([\w.-]{1,64})(/.*)", re.ASCII)


class FakeLLM(Listener):
    """A provider on a local port; use it as an async context manager.

    `strict`: refuse what the real provider refuses (else only report it). `models`: the names that exist (None: any).
    `gateway`: equal ids and empty names of tool calls, which it may send itself, are accepted.
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
        listens: bool = True,
        close_after: Callable[[int], bool] = lambda call: False,
        waits_for_close: bool = False,
        gateway: bool = False,
        tokens: TokenEndpoint | None = None,
    ) -> None:
        """Without `listens` the caller accepts connections, each with `connection()`."""
        super().__init__(listens=listens)
        self.script = script
        self.observer: Observer = observer or Silent()
        self.close_after = close_after
        self.waits_for_close = waits_for_close
        """Let a client that asked for `Connection: close` close first: our close would hide when it hangs up."""
        self._strict = strict
        self._gateway = gateway
        self._tokens = tokens or TokenEndpoint()
        self._models = models
        self._clock = clock or RealClock()
        self._memories = Memories()
        self._cache = RenderCache()
        self._room = bytearray(ROOM)
        self._calls = 0
        self._connected = 0

    def connection(self) -> Connection:
        """Return the protocol of one connection, which shares its buffer with all others."""
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
        told = over_websocket.obeyed(connection.memory, incoming, strict=self._strict)
        if told is not None:
            return connection.write(told)
        self._calls += 1
        request = self._read(incoming)
        if self._tokens.is_asked(request):
            await self._answer_token(request, connection, incoming)
            return
        if connection.memory is not None:
            request, incoming = over_websocket.meant(request, incoming, connection.memory)
        elif websocket.is_asked(incoming.head) and request.path in over_websocket.PATHS and request.key:
            refused = websocket.trouble(incoming.head)
            if refused is None:
                self._calls -= 1  # an upgrade is no call
                return connection.upgrade(
                    incoming.head, *over_websocket.opened(request, incoming.head, connection.conn.id)
                )
            incoming = replace(incoming, trouble=refused)
        self._tokens.carries(request.call, request.key)
        dialect = dialect_of(request)
        outcome = self._outcome(dialect.whole(request), dialect, connection.conn, incoming)
        await self._deliver(request, outcome, connection)
        framed = not incoming.head.http_1_0 and incoming.trouble is None and not self.close_after(request.call)
        if connection.memory is None:
            connection.by_us = outcome.wire_reply.closes and not (framed and self.waits_for_close)
        elif outcome.wire_reply.closes:
            connection.close_sent()

    async def _answer_token(self, request: Request, connection: Connection, incoming: Incoming) -> None:
        closes = not incoming.head.keep_alive or incoming.trouble is not None
        now_s = int(self._clock.wall().timestamp())
        fact, wire_reply, late_s = self._tokens.respond(request, now_s, closes=closes)
        self.observer.saw(fact)
        connection.by_us = closes
        if late_s or wire_reply is None:
            await connection.can_wait()
        if wire_reply is None:
            await asyncio.Event().wait()  # until the client hangs up
        else:
            await Delivery(wire_reply, connection.write, None, self._clock).run(late_s)

    def _read(self, incoming: Incoming) -> Request:
        head = incoming.head
        session, path = session_of(head.path, self._tokens.owner(head.key))
        path, deployment = openai_path(path)
        return Request(
            self._calls,
            head.method,
            path,
            head.headers,
            incoming.body,
            with_model(json_object(incoming.body), deployment),
            head.query,
            self._memories.of(session),
            session,
            head.key,
        )

    def _outcome(self, request: Request, dialect: Dialect, conn: Conn, incoming: Incoming) -> RequestOutcome:
        conversation = None
        warms = request.websocket and over_websocket.warms(request.document)
        if request.document is not None and dialect.asks_for_reply(request) and not warms:
            conversation = dialect.parse(request)
        seen = RequestSeen(
            call=request.call,
            conn=conn,
            wire=dialect.WIRE,
            path=incoming.head.target_without_key,
            method="GET" if warms else request.method,
            key=fingerprint(request.key),
            conversation=conversation,
            body=without_key(request.body, request.key),
            size=len(request.body),
            user_agent=request.headers.get("user-agent", ""),
            session=request.session,
            websocket=request.websocket,
            host=request.headers.get("host", ""),
        )
        self.observer.saw(seen)
        trouble = incoming.trouble
        goes_on = incoming.head.keep_alive and (trouble is None or request.websocket)
        responder = Responder(
            request,
            dialect,
            self.script,
            self._strict,
            self._models,
            self._clock.wall(),
            self._cache,
            closes=self.close_after(request.call) or not goes_on,
            http_1_0=incoming.head.http_1_0,
            gateway=self._gateway,
        )
        if trouble is None:
            return responder.respond(conversation)
        too_large = trouble.status == _TOO_LARGE
        return responder.refused(dialect.TOO_LARGE if too_large else Refusal(trouble.status, trouble.message))

    async def _deliver(self, request: Request, outcome: RequestOutcome, connection: Connection) -> None:
        for fact in outcome.facts:
            self.observer.saw(fact)
        wire_reply = outcome.wire_reply
        takes_time = bool(outcome.delay_s) or wire_reply.paced
        gate = self._gate(request.call, takes_time=takes_time)
        delivery: Delivery

        def write(data: bytes) -> None:
            connection.write(data)
            if delivery.body in wire_reply.told.ends:
                connection.flush_control()

        def ask(at: int) -> Awaitable[Sequence[int]]:
            assert gate is not None  # noqa: S101
            # Pongs may have been sent since the reply began.
            carried = connection.carried - delivery.head - delivery.body
            return _asked(gate, request.call, connection.conn, carried, wire_reply, at)

        delivery = Delivery(
            wire_reply, write if connection.memory else connection.write, ask if gate else None, self._clock
        )
        try:
            if gate or takes_time:
                await connection.can_wait()
            await delivery.run(outcome.delay_s)
        except BaseException:
            self.observer.saw(_ended(request.call, delivery, wire_reply, outcome.stop, "hung_up"))
            connection.transport.abort()
            raise
        self.observer.saw(_ended(request.call, delivery, wire_reply, outcome.stop, "complete"))

    def _gate(self, call: int, *, takes_time: bool) -> Gate | None:
        """Return the observer's gate for this reply, or None if the reply passes without it."""
        gate: Gate | None = getattr(self.observer, "gate", None)
        passes: Callable[[int], bool] | None = getattr(self.observer, "passes", None)
        return None if gate and passes and not takes_time and passes(call) else gate


def _asked(gate: Gate, call: int, conn: Conn, carried: int, wire_reply: WireReply, at: int) -> Awaitable[Sequence[int]]:
    size = -1 if wire_reply.told.endless else wire_reply.size
    ends = wire_reply.told.ends if wire_reply.told.stream else ()
    return gate(Point(call, conn, carried, len(wire_reply.head), ends, size, at, wire_reply.told.stream))


def _ended(
    call: int, delivery: Delivery, wire_reply: WireReply, stop: str, how: Literal["complete", "hung_up"]
) -> WriteEnded:
    return WriteEnded(call, delivery.head, delivery.body, delivery.tokens, wire_reply.told.marks, how, stop)


def dialect_of(request: Request) -> Dialect:
    """Return a request's dialect; the default is OpenAI chat."""
    claimants = _claimants(request.path)
    if len(claimants) == 1:
        return claimants[0]
    for dialect in claimants or DIALECTS:
        if any(mark in request.headers or mark in request.query for mark in dialect.MARKS):
            return dialect
    return OPENAI_CHAT


def session_of(path: str, key: str = "") -> tuple[str, str]:
    """Return a request's session and its path within that session.

    The prefix `/s/NAME` names the session; without it each `key` (a fingerprint) has its own session, and all
    requests without a key share one.

    >>> session_of("/s/red/v1/messages", "1a2b3c4d"), session_of("/v1/messages", "1a2b3c4d"), session_of("/api/chat")
    (('red', '/v1/messages'), ('key-1a2b3c4d', '/v1/messages'), ('default', '/api/chat'))
    """
    named = _IN_SESSION.fullmatch(path) if path.startswith("/s/") else None
    if named:
        return named[1], named[2]
    return f"key-{key}" if key else DEFAULT_SESSION, path


@lru_cache(maxsize=1024)
def _claimants(path: str) -> tuple[Dialect, ...]:
    return tuple(dialect for dialect in DIALECTS if dialect.PATHS.fullmatch(path))
