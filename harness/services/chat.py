"""A small chat service behind the link `chat`, in the shape of Telegram's bot API: agents poll it for their messages.

```
agent ─▶ POST /bot<key>/getUpdates {"offset": 8, "timeout": 30}      held until there is a message, or the time is over
agent ◀─ {"ok": true, "result": [{"update_id": 8, "message": {"chat": {"id": 7}, "text": "Hello"}}]}
agent ─▶ POST /bot<key>/sendMessage {"chat_id": 7, "text": "Hi!"}
```

A message is given again until a later `offset` confirms it. Whatever other method is called is answered with `true`.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Self

from aiohttp import web

from wedgehog.harness.network.base import Address
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.record.clock import Clock

ChatOperation = Literal["poll", "send", "other"]
"""A poll that brings a message, a message of the agent's, anything else."""
ChatGate = Callable[[ChatOperation, Address, int], Awaitable[None]]
"""`await gate(what, connection, bytes written on it so far)` before each response."""
LONGEST_POLL_S = 50.0
CHAT_ID = 7
AGENT = {"id": 42, "is_bot": True, "first_name": "Wedgehog", "username": "wedgehog_bot"}


class _Server(web.Server):
    """Tells of each connection that is gone."""

    left: Callable[[object], None] = staticmethod(lambda handler: None)

    def connection_lost(self, handler: Any, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self.left(handler)


class ChatService:
    """Listens on a free loopback port. An async context manager."""

    def __init__(
        self,
        clock: Clock,
        time_scale: float,
        *,
        asked: Callable[[Literal["poll", "send"], str], None] = lambda what, text: None,
        gate: ChatGate | None = None,
        left: Callable[[Address], None] = lambda conn: None,
        closes: bool = False,
    ) -> None:
        """Polls are held for their own time divided by `time_scale`.

        `asked` gets each message that is handed over or sent by the agent, `left` each connection that is closed.
        With `closes` each response ends its connection, so that the next request comes on a fresh one.
        """
        self._clock, self._scale = clock, time_scale
        self.asked, self.gate, self.left, self.closes = asked, gate, left, closes
        self._waiting: dict[int, str] = {}
        self._count = 0
        self._written: dict[object, tuple[Address, int]] = {}
        """Of each open connection: whose it is, and what it has carried."""
        self._news = asyncio.Event()
        self.polled = asyncio.Event()
        """Set when the agent has asked for messages."""
        self.handed = 0
        """The number of the last message that the agent was given."""
        self.sent: list[str] = []
        """What the agent sent since then."""
        self.sent_s = 0.0

    async def __aenter__(self) -> Self:
        """Listen."""
        server = _Server(self._answer, handler_cancellation=True)
        server.left = self._gone
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, 0)
        await site.start()
        self.address: Address = self._runner.addresses[0][:2]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop, open polls too."""
        await self._runner.cleanup()

    def put(self, text: str) -> int:
        """A message for the agent; its number."""
        self._count += 1
        self._waiting[self._count] = text
        self._news.set()
        return self._count

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        method, said = request.path.rpartition("/")[2].lower(), await _parameters(request)
        what: ChatOperation = "other"
        result: Any = True
        if method == "getupdates":
            self.polled.set()
            result = await self._updates(said)
            what = "poll" if result else "other"
        elif method == "sendmessage":
            what, text = "send", str(said.get("text", ""))
            result = _message(text, sender=AGENT)
            self.sent.append(text)
            self.sent_s = self._clock.now()
            self.asked("send", text)
        elif method == "getme":
            result = AGENT
        return await self._written_out(request, what, {"ok": True, "result": result})

    async def _updates(self, said: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The messages from `offset` on; where there is none, after so much time or as soon as there is one."""
        offset, wait_s = int(said.get("offset") or 0), min(float(said.get("timeout") or 0), LONGEST_POLL_S)
        self._waiting = {number: text for number, text in self._waiting.items() if number >= offset}
        self._news.clear()
        if not self._waiting and wait_s:
            await self._news_within(wait_s / self._scale)
        for number, text in self._waiting.items():
            self.asked("poll", text)
            if number > self.handed:
                self.handed, self.sent = number, []
        return [{"update_id": number, "message": _message(text)} for number, text in self._waiting.items()]

    async def _news_within(self, wait_s: float) -> None:
        news, over = asyncio.create_task(self._news.wait()), asyncio.create_task(self._clock.sleep(wait_s))
        try:
            await asyncio.wait({news, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            news.cancel()
            over.cancel()

    async def _written_out(
        self, request: web.BaseRequest, what: ChatOperation, reply: Mapping[str, Any]
    ) -> web.StreamResponse:
        response = web.Response(body=json.dumps(reply).encode(), content_type="application/json")
        peer = request.transport.get_extra_info("peername")[:2] if request.transport else ("", 0)
        conn, written = self._written.setdefault(request.protocol, (peer, 0))
        if self.closes:
            response.force_close()
        if self.gate is not None:
            await self.gate(what, conn, written)
        writer = await response.prepare(request)
        await response.write_eof()
        if writer is not None and request.protocol in self._written:
            self._written[request.protocol] = (conn, written + writer.output_size)
        if self.closes or not request.keep_alive:
            # Who closes is the agent: our end would overtake what a fault holds back, and look like the agent's.
            await asyncio.Event().wait()
        return response

    def _gone(self, handler: object) -> None:
        conn, _ = self._written.pop(handler, (None, 0))
        if conn is not None:
            self.left(conn)


def _message(text: str, sender: Mapping[str, Any] | None = None) -> dict[str, Any]:
    whose = sender or {"id": CHAT_ID, "is_bot": False, "first_name": "Someone"}
    return {"message_id": 1, "date": 0, "chat": {"id": CHAT_ID, "type": "private"}, "from": whose, "text": text}


async def _parameters(request: web.BaseRequest) -> dict[str, Any]:
    """In the address, as a form or as JSON: the service takes them all."""
    said: dict[str, Any] = dict(request.query)
    if request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        return said | dict(await request.post())
    with contextlib.suppress(ValueError):
        found = json.loads(await request.text() or "{}")
        said |= found if isinstance(found, dict) else {}
    return said
