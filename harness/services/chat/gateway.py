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
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from wedgehog.harness.services.chat.discord import gateway_url
from wedgehog.harness.services.chat.discord_places import AGENT, SELF
from wedgehog.harness.services.chat.web_socket import CountedSocket, Outbound

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


class Gateway:
    """One session at a time, on one connection at a time."""

    def __init__(self, outbound: Outbound, guilds: Sequence[dict[str, Any]]) -> None:
        """`guilds` are the servers that the agent is in."""
        self._outbound, self._guilds, self._beat_s = outbound, guilds, HEARTBEAT_S / outbound.time_scale
        self._session: _GatewaySession | None = None
        self._connection: CountedSocket | None = None
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
        connection = self._outbound.connection(request)
        await connection.open()
        try:
            await connection.send(_payload(HELLO, {"heartbeat_interval": max(1, int(self._beat_s * 1000))}))
            while (text := await connection.receive(self._beat_s * MISSED)) is not None:
                await self._take(connection, json.loads(text))
        except TimeoutError:
            await connection.close(TIMED_OUT)
        finally:
            connection.stop()
        return connection.ws

    async def _take(self, connection: CountedSocket, asked: dict[str, Any]) -> None:
        op = asked.get("op")
        if op == HEARTBEAT:
            await connection.send(_payload(ACK))
        elif op == IDENTIFY:
            self._identified(connection)
            self._goes_on(connection, 0)
            self._outbound.ready.set()
        elif op == RESUME:
            await self._resumed(connection, asked.get("d") or {})
        elif connection.pump is None:
            await connection.close(NOT_AUTHENTICATED)

    def _identified(self, connection: CountedSocket) -> None:
        """Begin a session; messages that have not gone out yet come with it."""
        before, self._session = self._session, _GatewaySession(secrets.token_hex(8))
        left = before.dispatches[before.sent :] if before is not None else self._waiting
        ready = {
            "v": 10,
            "user": SELF,
            "guilds": [{"id": it["id"], "unavailable": True} for it in self._guilds],
            "session_id": self._session.id,
            "resume_gateway_url": gateway_url(connection.request.host),
            "shard": [0, 1],
            "application": {"id": AGENT["id"], "flags": 0},
        }
        guilds = [Dispatch("GUILD_CREATE", it) for it in self._guilds]
        for dispatch in (Dispatch("READY", ready), *guilds, *(it for it in left if it.number)):
            self._session.add(dispatch)
        self._waiting = []

    async def _resumed(self, connection: CountedSocket, asked: dict[str, Any]) -> None:
        session, seq = self._session, asked.get("seq")
        if session is None or asked.get("session_id") != session.id or not isinstance(seq, int):
            await connection.send(_payload(INVALID, False))
        elif seq > len(session.dispatches):
            await connection.close(BAD_SEQUENCE)
        else:
            session.add(Dispatch("RESUMED", {"_trace": []}))
            self._goes_on(connection, seq)
            self._outbound.ready.set()

    def _goes_on(self, connection: CountedSocket, seq: int) -> None:
        """Send what comes after this number, on this connection alone."""
        assert self._session is not None  # noqa: S101  it has begun or is resumed
        if self._connection is not None:
            self._connection.stop()
        connection.stop()
        self._connection = connection
        connection.pump = asyncio.create_task(self._send_all(connection, self._session, seq))

    async def _send_all(self, connection: CountedSocket, session: _GatewaySession, seq: int) -> None:
        while True:
            session.news.clear()
            while seq < len(session.dispatches):
                seq += 1
                if not await self._send(connection, session, seq):
                    return
            await session.news.wait()

    async def _send(self, connection: CountedSocket, session: _GatewaySession, seq: int) -> bool:
        """Send one event; false if it is refused."""
        dispatch = session.dispatches[seq - 1]
        if dispatch.number:
            if not self._outbound.hand_over(dispatch.number, dispatch.text):
                await self._refuse(connection)
                return False
            if session.sent >= seq:
                self._outbound.again(dispatch.text)
            await self._outbound.gate(connection.request)
        session.sent = max(session.sent, seq)
        await connection.send(_payload(DISPATCH, dispatch.data, s=seq, t=dispatch.name))
        return True

    async def _refuse(self, connection: CountedSocket) -> None:
        """End the connection: at once, by the word to connect again, or by that to resume a session."""
        self._refusals += 1
        if self._refusals % 3 == 2:
            await connection.send(_payload(RECONNECT))
        elif self._refusals % 3 == 0:
            await connection.send(_payload(INVALID, True))
        try:
            await asyncio.sleep(0 if self._refusals % 3 == 1 else self._beat_s)
        finally:
            await connection.close(UNKNOWN_ERROR)


def _payload(op: int, data: Any = None, s: int | None = None, t: str | None = None) -> dict[str, Any]:
    return {"op": op, "d": data, "s": s, "t": t}
