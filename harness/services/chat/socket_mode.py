"""Slack's socket mode, https://docs.slack.dev/apis/events-api/using-socket-mode: events come over a WebSocket.

```
agent ─▶ POST /api/apps.connections.open             agent ◀─ {"ok": true, "url": "ws://…/link/?ticket=…"}
agent ◀─ {"type": "hello", "num_connections": 1, …}
agent ◀─ {"type": "events_api", "envelope_id": "e1", "payload": {event callback}, "retry_attempt": 0, …}
agent ─▶ {"envelope_id": "e1"}                       within three seconds, else it comes again
```

What is not acknowledged comes again on the next connection too, with the same `event_id`.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from wedgehog.harness.services.chat.web_socket import CountedSocket, Outbound

PING_S = 5.0
"""Slack's libraries connect again if no ping comes for half a minute."""
REFRESH, GONE = "refresh_requested", 1001


@dataclass(slots=True)
class _Envelope:
    """One event until it is acknowledged."""

    id: str
    number: int
    text: str
    payload: dict[str, Any]
    pauses_s: Iterator[float]
    attempts: int = 0
    due_s: float = 0.0


class SocketMode:
    """All open envelopes, and the connection that gets them: the newest one."""

    def __init__(self, outbound: Outbound, patience_s: float, pauses_s: Callable[[], Iterator[float]]) -> None:
        """An event that is not acknowledged within `patience_s` comes again behind each of the pauses."""
        self._outbound, self._patience_s, self._pauses_s = outbound, patience_s, pauses_s
        self._open: list[_Envelope] = []
        self._count = 0
        self._connection: CountedSocket | None = None
        self._news = asyncio.Event()

    def put(self, number: int, text: str, payload: dict[str, Any]) -> None:
        """Bring an event with a message of the user."""
        self._count += 1
        self._open.append(_Envelope(f"e{self._count}", number, text, payload, self._pauses_s()))
        self._news.set()

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """A connection, until the agent or a fault ends it."""
        connection = self._outbound.connection(request)
        await connection.open()
        info = {"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A7"}, "debug_info": {}}
        await connection.send(info)
        self._takes_over(connection)
        try:
            while (text := await self._next(connection)) is not None:
                self._acknowledged(json.loads(text).get("envelope_id"))
        finally:
            connection.stop()
        return connection.ws

    async def _next(self, connection: CountedSocket) -> str | None:
        while True:
            try:
                return await connection.receive(PING_S / self._outbound.time_scale)
            except TimeoutError:
                await connection.ping()

    def _takes_over(self, connection: CountedSocket) -> None:
        """The events go to this connection from now on, first those that are open."""
        if self._connection is not None:
            self._connection.stop()
        for envelope in self._open:
            envelope.due_s = 0.0
        self._connection = connection
        connection.pump = asyncio.create_task(self._send_all(connection))
        self._outbound.ready.set()

    def _acknowledged(self, id_: object) -> None:
        self._open = [it for it in self._open if it.id != id_]

    async def _send_all(self, connection: CountedSocket) -> None:
        while True:
            self._news.clear()
            for envelope in list(self._open):
                if envelope.due_s <= _now_s() and not await self._send(connection, envelope):
                    return
            due_s = min((it.due_s for it in self._open), default=None)
            try:
                async with asyncio.timeout_at(due_s):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def _send(self, connection: CountedSocket, envelope: _Envelope) -> bool:
        """Send an event once more, unless it was acknowledged or is given up; false if it is refused."""
        pause_s = next(envelope.pauses_s, None)
        if envelope not in self._open:
            return True
        if not self._outbound.hand_over(envelope.number, envelope.text):
            await connection.send({"type": "disconnect", "reason": REFRESH, "debug_info": {}})
            try:
                await asyncio.sleep(PING_S / self._outbound.time_scale)
            finally:
                await connection.close(GONE)
            return False
        if envelope.attempts:
            self._outbound.again(envelope.text)
        if pause_s is None:
            self._acknowledged(envelope.id)
            pause_s = 0.0
        await self._outbound.gate(connection.request)
        envelope.due_s = _now_s() + (self._patience_s + pause_s) / self._outbound.time_scale
        await connection.send(_event(envelope))
        envelope.attempts += 1
        return True


def socket_url(host: str) -> str:
    """Its own name if the agent called Slack by its own, else our address."""
    name = host.partition(":")[0]
    address = "wss://wss-primary.slack.com" if name.endswith("slack.com") else f"ws://{host}"
    return f"{address}/link/?ticket=t7&app_id=A7"


def _event(envelope: _Envelope) -> dict[str, Any]:
    retry = {"retry_attempt": envelope.attempts, "retry_reason": "timeout" if envelope.attempts else ""}
    return {
        "envelope_id": envelope.id,
        "payload": envelope.payload,
        "type": "events_api",
        "accepts_response_payload": False,
        **retry,
    }


def _now_s() -> float:
    return asyncio.get_running_loop().time()
