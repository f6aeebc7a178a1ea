"""A small chat service behind the link `chat`, in the shape of Telegram's bot API: agents poll it for their messages.

```
agent ─▶ POST /bot<key>/getUpdates {"offset": 8, "timeout": 30}      waits for a message, or for the timeout
agent ◀─ {"ok": true, "result": [{"update_id": 8, "message": {"chat": {"id": 7}, "text": "Hello"}}]}
agent ─▶ POST /bot<key>/sendMessage {"chat_id": 7, "text": "Hi!"}
```

A message is delivered again until a later `offset` confirms it. The agent may change what it sent (`editMessageText`),
and take it back (`deleteMessage`). What counts is what its user reads: the text without the marks of its `parse_mode`.
As in the real one, a text is refused with 400 if it is empty or has more than 4,096 characters, and its user does not
get it. Any other method returns `true`.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Any, Literal, Self

from aiohttp import web

from wedgehog.harness.network.base import Address
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.record.clock import Clock, first_of
from wedgehog.harness.services.chat_markup import without_markup

ChatNews = Literal["poll", "send", "refused"]
"""What is told of: a message that the agent receives, one that it sends, one of its texts that is refused."""
ChatOperation = Literal["poll", "send", "other"]
"""A poll that returns a message, a message from the agent, anything else."""
ChatGate = Callable[[ChatOperation, Address, int], Awaitable[None]]
"""`await gate(operation, connection, bytes written on it)` before each response."""
LONGEST_POLL_S = 50.0
TYPES_S = 5.0
"""How long a chat shows that the agent is typing, if no message comes before."""
LONGEST_TEXT = 4096
CHAT_ID = 7
FIRST_ID = 100
"""Of the agent's own messages."""
AGENT = {"id": 42, "is_bot": True, "first_name": "Wedgehog", "username": "wedgehog_bot"}


class _Server(web.Server):
    """Calls `left` for each closed connection."""

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
        asked: Callable[[ChatNews, str], None] = lambda what, text: None,
        gate: ChatGate | None = None,
        left: Callable[[Address], None] = lambda conn: None,
        closes: bool = False,
    ) -> None:
        """Polls wait for their timeout divided by `time_scale`.

        `asked` is called for each message that the agent receives or sends, and with the reason for each text that is
        refused; `left` is called for each closed connection.
        With `closes` each response ends its connection, so that the next request uses a new one.
        """
        self._clock, self._scale = clock, time_scale
        self.asked, self.gate, self.left, self.closes = asked, gate, left, closes
        self._waiting: dict[int, str] = {}
        self._count = 0
        self._written: dict[object, tuple[Address, int]] = {}
        """The peer address of each open connection, and the bytes written on it."""
        self._news = asyncio.Event()
        self.polled = asyncio.Event()
        """Set when the agent has polled."""
        self.handed = 0
        """The number of the last message that the agent received."""
        self._sent: dict[int, str] = {}
        """By their ids."""
        self._ids = count(FIRST_ID)
        self.sent_s = 0.0
        self._types_until_s = 0.0

    @property
    def types(self) -> bool:
        """Whether its user reads "typing …" now."""
        return self._clock.now() < self._types_until_s

    @property
    def sent(self) -> list[str]:
        """The messages that the agent has sent since its last message was handed over, as they are now."""
        return list(self._sent.values())

    async def __aenter__(self) -> Self:
        server = _Server(self._handle, handler_cancellation=True)
        server.left = self._gone
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, HOST, 0)
        await site.start()
        self.address: Address = self._runner.addresses[0][:2]
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._runner.cleanup()

    def put(self, text: str) -> int:
        """Queue a message for the agent and return its number."""
        self._count += 1
        self._waiting[self._count] = text
        self._news.set()
        return self._count

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        method, params = request.path.rpartition("/")[2].lower(), await _parameters(request)
        operation: ChatOperation = "other"
        result: Any = True
        if why := _refusal(method, params):
            self.asked("refused", why)
            return await self._respond(request, operation, {"ok": False, "error_code": 400, "description": why})
        if method == "getupdates":
            self.polled.set()
            result = await self._updates(params)
            operation = "poll" if result else "other"
        elif method == "sendmessage":
            operation, text = "send", _shown(params)
            self._types_until_s = 0.0
            result = self._says(next(self._ids), text)
            self.asked("send", text)
        elif method == "sendchataction":
            self._types_until_s = self._clock.now() + TYPES_S / self._scale
        elif method in ("editmessagetext", "deletemessage") and (id_ := _id(params)) in self._sent:
            if method == "editmessagetext":
                result = self._says(id_, _shown(params))
            else:
                del self._sent[id_]
        elif method == "getme":
            result = AGENT
        return await self._respond(request, operation, {"ok": True, "result": result})

    def _says(self, id_: int, text: str) -> dict[str, Any]:
        self._sent[id_] = text
        self.sent_s = self._clock.now()
        return _message(text, AGENT, id_)

    async def _updates(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the messages from `offset` on; without one, wait for the next message or the timeout."""
        offset, wait_s = int(params.get("offset") or 0), min(float(params.get("timeout") or 0), LONGEST_POLL_S)
        self._waiting = {number: text for number, text in self._waiting.items() if number >= offset}
        self._news.clear()
        if not self._waiting and wait_s:
            await first_of(self._news.wait(), self._clock.sleep(wait_s / self._scale))
        for number, text in self._waiting.items():
            self.asked("poll", text)
            if number > self.handed:
                self.handed, self._sent = number, {}
        waiting = self._waiting.items()
        return [{"update_id": number, "message": _message(text, id_=number)} for number, text in waiting]

    async def _respond(
        self, request: web.BaseRequest, operation: ChatOperation, reply: Mapping[str, Any]
    ) -> web.StreamResponse:
        body = json.dumps(reply).encode()
        response = web.Response(body=body, content_type="application/json", status=reply.get("error_code", 200))
        peer = request.transport.get_extra_info("peername")[:2] if request.transport else ("", 0)
        conn, written = self._written.setdefault(request.protocol, (peer, 0))
        if self.closes:
            response.force_close()
        if self.gate is not None:
            await self.gate(operation, conn, written)
        writer = await response.prepare(request)
        await response.write_eof()
        if writer is not None and request.protocol in self._written:
            self._written[request.protocol] = (conn, written + writer.output_size)
        if self.closes or not request.keep_alive:
            # The agent must close: our FIN would pass bytes that a fault holds back, and look like the agent's.
            await asyncio.Event().wait()
        return response

    def _gone(self, handler: object) -> None:
        conn, _ = self._written.pop(handler, (None, 0))
        if conn is not None:
            self.left(conn)


def _refusal(method: str, params: Mapping[str, Any]) -> str:
    """Why a text is not sent, in the words of Telegram; else empty."""
    if method not in ("sendmessage", "editmessagetext"):
        return ""
    text = _shown(params)
    if not text.strip():
        return "Bad Request: message text is empty"
    return "Bad Request: message is too long" if len(text.encode("utf-16-le")) > 2 * LONGEST_TEXT else ""


def _shown(params: Mapping[str, Any]) -> str:
    """The text as its user reads it."""
    return without_markup(str(params.get("text") or ""), str(params.get("parse_mode") or ""))


def _id(params: Mapping[str, Any]) -> int:
    given = str(params.get("message_id", ""))
    return int(given) if given.isdecimal() else 0


def _message(text: str, sender: Mapping[str, Any] | None = None, id_: int = 1) -> dict[str, Any]:
    whose = sender or {"id": CHAT_ID, "is_bot": False, "first_name": "Someone"}
    return {"message_id": id_, "date": 0, "chat": {"id": CHAT_ID, "type": "private"}, "from": whose, "text": text}


async def _parameters(request: web.BaseRequest) -> dict[str, Any]:
    """Read parameters from the query string, a form or JSON."""
    params: dict[str, Any] = dict(request.query)
    if request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        return params | dict(await request.post())
    with contextlib.suppress(ValueError):
        found = json.loads(await request.text() or "{}")
        params |= found if isinstance(found, dict) else {}
    return params
