"""Discord's gateway, https://docs.discord.com/developers/events/gateway: a WebSocket that brings messages.

```
agent ─▶ GET /?v=10&encoding=json, upgraded to a WebSocket
agent ◀─ {"op": 10, "d": {"heartbeat_interval": 5000}}           hello; the agent sends op 1 so often, answered by op 11
agent ─▶ {"op": 2, "d": {"token": …}}                            identify: a new session
agent ◀─ {"op": 0, "t": "READY", "s": 1, "d": {"session_id": …}}
agent ◀─ {"op": 0, "t": "MESSAGE_CREATE", "s": 2, "d": {…}}
agent ─▶ {"op": 6, "d": {"session_id": …, "seq": 1}}             resume on a new connection: all after 1 comes again
```

What was written while no connection was open waits for the next one, also for one with a new session: a user who sees
that the agent is there again writes again. What went out on a connection comes again only with a resumed session.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from wedgehog.harness.services.chat.discord import gateway_url
from wedgehog.harness.services.chat.discord_places import AGENT, SELF

HEARTBEAT_S = 5.0
"""Discord's own is 41.25 s. With a short one an agent notices soon that its connection is silent."""
MISSED = 12
"""So many intervals without a word from the agent end a connection: a minute, as with Discord's own interval."""
HELLO, HEARTBEAT, ACK, IDENTIFY, RESUME, RECONNECT, INVALID, DISPATCH = 10, 1, 11, 2, 6, 7, 9, 0
UNKNOWN_ERROR, NOT_AUTHENTICATED, BAD_SEQUENCE, TIMED_OUT = 4000, 4003, 4007, 4009
"""Codes of a close frame."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One event of a session; `number` and `text` are those of its user's message."""

    name: str
    data: dict[str, Any]
    number: int = 0
    text: str = ""


@dataclass(slots=True)
class _GatewaySession:
    """What one identify began: its events by number from 1 on, and how many of them have gone out."""

    id: str
    dispatches: list[Dispatch] = field(default_factory=list)
    sent: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, dispatch: Dispatch) -> None:
        self.dispatches.append(dispatch)
        self.news.set()


class GatewayConnection:
    """One WebSocket; it counts the bytes that it writes."""

    def __init__(self, ws: web.WebSocketResponse, host: str, wrote: Callable[[int], None]) -> None:
        self.host = host
        self._ws, self._wrote = ws, wrote
        self.pump: asyncio.Task[None] | None = None
        """Sends the events of the session."""

    async def send(self, op: int, data: Any, **more: Any) -> None:
        """Send a payload; a connection that is closing takes none."""
        payload = json.dumps({"op": op, "d": data, "s": None, "t": None, **more})
        self._wrote(_frame_size(len(payload.encode())))
        with contextlib.suppress(ConnectionError):
            await self._ws.send_str(payload)

    async def pong(self, data: bytes) -> None:
        """Answer a ping."""
        self._wrote(_frame_size(len(data)))
        with contextlib.suppress(ConnectionError):
            await self._ws.pong(data)

    async def close(self, code: int) -> None:
        """End it with a code."""
        self._wrote(4)
        await self._ws.close(code=code)

    def stop(self) -> None:
        """Send no more events."""
        if self.pump is not None:
            self.pump.cancel()


class Gateway:
    """One session at a time, on one connection at a time."""

    def __init__(
        self,
        time_scale: float,
        guilds: Sequence[dict[str, Any]],
        ready: asyncio.Event,
        hand_over: Callable[[Dispatch], bool],
        gate: Callable[[web.BaseRequest], Awaitable[None]],
        again: Callable[[str], None],
        wrote: Callable[[web.BaseRequest, int], None],
    ) -> None:
        """`hand_over` is told of a message just before it goes out; false: it is refused, and the connection ends.

        `gate` holds it back, `again` is told of one that had gone out before, `ready` is set when an agent is there.
        """
        self._beat_s, self._guilds, self._ready = HEARTBEAT_S / time_scale, guilds, ready
        self._hand_over, self._gate, self._again, self._wrote = hand_over, gate, again, wrote
        self._session: _GatewaySession | None = None
        self._connection: GatewayConnection | None = None
        self._refusals = 0
        self._waiting: list[Dispatch] = []
        """Messages from before the first session."""

    def put(self, number: int, text: str, data: dict[str, Any]) -> None:
        """Bring a message of the user."""
        dispatch = Dispatch("MESSAGE_CREATE", data, number, text)
        if self._session is None:
            self._waiting.append(dispatch)
        else:
            self._session.add(dispatch)

    def echo(self, message: dict[str, Any]) -> None:
        """Tell the agent of a message of its own."""
        if self._session is not None:
            self._session.add(Dispatch("MESSAGE_CREATE", message))

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """A connection, until the agent or a fault ends it."""
        ws = web.WebSocketResponse(compress=False, timeout=0.5, autoping=False)
        writer = await ws.prepare(request)
        self._wrote(request, writer.output_size)
        connection = GatewayConnection(ws, request.host, lambda count: self._wrote(request, count))
        try:
            await connection.send(HELLO, {"heartbeat_interval": max(1, int(self._beat_s * 1000))})
            await self._listen(request, ws, connection)
        finally:
            connection.stop()
        return ws

    async def _listen(self, request: web.BaseRequest, ws: web.WebSocketResponse, connection: GatewayConnection) -> None:
        while True:
            try:
                message = await ws.receive(self._beat_s * MISSED)
            except TimeoutError:
                return await connection.close(TIMED_OUT)
            if message.type == WSMsgType.PING:
                await connection.pong(message.data)
                continue
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                return None
            await self._take(request, connection, json.loads(message.data))

    async def _take(self, request: web.BaseRequest, connection: GatewayConnection, asked: dict[str, Any]) -> None:
        op = asked.get("op")
        if op == HEARTBEAT:
            await connection.send(ACK, None)
        elif op == IDENTIFY:
            self._identified(connection)
            self._goes_on(request, connection, 0)
            self._ready.set()
        elif op == RESUME:
            await self._resumed(request, connection, asked.get("d") or {})
        elif connection.pump is None:
            await connection.close(NOT_AUTHENTICATED)

    def _identified(self, connection: GatewayConnection) -> None:
        """Begin a session; messages that have not gone out yet come with it."""
        before, self._session = self._session, _GatewaySession(secrets.token_hex(8))
        left = before.dispatches[before.sent :] if before is not None else self._waiting
        ready = {
            "v": 10,
            "user": SELF,
            "guilds": [{"id": it["id"], "unavailable": True} for it in self._guilds],
            "session_id": self._session.id,
            "resume_gateway_url": gateway_url(connection.host),
            "shard": [0, 1],
            "application": {"id": AGENT["id"], "flags": 0},
        }
        guilds = [Dispatch("GUILD_CREATE", it) for it in self._guilds]
        for dispatch in (Dispatch("READY", ready), *guilds, *(it for it in left if it.number)):
            self._session.add(dispatch)
        self._waiting = []

    async def _resumed(self, request: web.BaseRequest, connection: GatewayConnection, asked: dict[str, Any]) -> None:
        session, seq = self._session, asked.get("seq")
        if session is None or asked.get("session_id") != session.id or not isinstance(seq, int):
            await connection.send(INVALID, False)
        elif seq > len(session.dispatches):
            await connection.close(BAD_SEQUENCE)
        else:
            session.add(Dispatch("RESUMED", {"_trace": []}))
            self._goes_on(request, connection, seq)
            self._ready.set()

    def _goes_on(self, request: web.BaseRequest, connection: GatewayConnection, seq: int) -> None:
        """Send what comes after this number, on this connection alone."""
        assert self._session is not None  # noqa: S101  it has begun or is resumed
        if self._connection is not None:
            self._connection.stop()
        connection.stop()
        self._connection = connection
        connection.pump = asyncio.create_task(self._send_all(request, connection, self._session, seq))

    async def _send_all(
        self, request: web.BaseRequest, connection: GatewayConnection, session: _GatewaySession, seq: int
    ) -> None:
        while True:
            session.news.clear()
            while seq < len(session.dispatches):
                seq += 1
                if not await self._send(request, connection, session, seq):
                    return
            await session.news.wait()

    async def _send(
        self, request: web.BaseRequest, connection: GatewayConnection, session: _GatewaySession, seq: int
    ) -> bool:
        """Send one event; false if it is refused."""
        dispatch = session.dispatches[seq - 1]
        if dispatch.number:
            if not self._hand_over(dispatch):
                await self._refuse(connection)
                return False
            if session.sent >= seq:
                self._again(dispatch.text)
            await self._gate(request)
        session.sent = max(session.sent, seq)
        await connection.send(DISPATCH, dispatch.data, s=seq, t=dispatch.name)
        return True

    async def _refuse(self, connection: GatewayConnection) -> None:
        """End the connection: at once, by the word to connect again, or by that to resume a session."""
        self._refusals += 1
        if self._refusals % 3 == 2:
            await connection.send(RECONNECT, None)
        elif self._refusals % 3 == 0:
            await connection.send(INVALID, True)
        if self._refusals % 3 != 1:
            await asyncio.sleep(self._beat_s)
        await connection.close(UNKNOWN_ERROR)


def _frame_size(payload: int) -> int:
    """Of an unmasked frame."""
    return payload + (2 if payload < 126 else 4 if payload < 65536 else 10)
