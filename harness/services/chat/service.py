"""A small chat service behind the link `chat`: chats of users with the agent, in the shape of a vendor's API.

The agent polls it for messages (`getUpdates` of [Telegram](telegram.py)), gets them at its webhook, or over a
[gateway](gateway.py). A message comes with each poll until a later `offset` confirms it. The agent may change what it
sent, and take it back. What the vendor refuses is refused, and then its user does not get it.
"""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Self

from aiohttp import web

from wedgehog.harness.faults.chat_fault import ChatRefusal
from wedgehog.harness.network.base import Address
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.record.clock import Clock, first_of
from wedgehog.harness.services.chat.api import ChatApi, ChatOperation, ChatResponse
from wedgehog.harness.services.chat.connections import Connections
from wedgehog.harness.services.chat.discord import Discord
from wedgehog.harness.services.chat.gateway import Gateway
from wedgehog.harness.services.chat.slack import Slack
from wedgehog.harness.services.chat.socket_mode import SocketMode
from wedgehog.harness.services.chat.telegram import Telegram
from wedgehog.harness.services.chat.user_chat import UserChat
from wedgehog.harness.services.chat.web_socket import Outbound
from wedgehog.harness.services.chat.webhook import Webhook

ChatNews = Literal["poll", "send", "refused"]
"""What is told of: a message that the agent receives, one that it sends, one of its texts that is refused."""
ChatGate = Callable[[ChatOperation, Address, int], Awaitable[None]]
"""`await gate(operation, connection, bytes written on it)` before each response."""
Refuses = Callable[[ChatOperation], ChatRefusal | None]
LONGEST_POLL_S = 50.0
FIRST_ID = 100
"""Of the agent's own messages."""


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
        api: ChatApi | None = None,
        *,
        chats: int = 1,
        asked: Callable[[ChatNews, str, int], None] = lambda what, text, chat: None,
        gate: ChatGate | None = None,
        left: Callable[[Address], None] = lambda conn: None,
        refuses: Refuses = lambda operation: None,
        again: Callable[[str], None] = lambda text: None,
        closes: bool = False,
    ) -> None:
        """By default it is Telegram's, with one chat; polls wait for their timeout divided by `time_scale`.

        `asked` is called for each message that the agent receives or sends, and with the reason for each text that is
        refused, with the place of its chat (-1: unknown); `left` is called for each closed connection. What `refuses`
        returns is the response to a request.
        `again` is called with a message that comes again, because its webhook was too slow or its gateway was resumed.
        With `closes` each response ends its connection, so that the next request uses a new one.
        """
        self._clock, self._scale, self._api = clock, time_scale, api or Telegram()
        self.asked, self.gate, self.left, self.refuses, self.closes = asked, gate, left, refuses, closes
        self._waiting: dict[int, str] = {}
        self.chats = tuple(UserChat(place, clock, self) for place in range(chats))
        self._said_in: list[UserChat] = []
        """The chat of each message of a user."""
        self._connections = Connections()
        self._news = asyncio.Event()
        self.polled = asyncio.Event()
        """Set when the agent has polled, or is at the gateway."""
        self._sent_by_key: dict[tuple[int, str], int] = {}
        self._last_id = FIRST_ID - 1
        self.webhook = Webhook(clock, time_scale, self._api, self._asked_in_a_response, again)
        self._gateway = self._web_socket(again)

    def _web_socket(self, again: Callable[[str], None]) -> Gateway | SocketMode | None:
        """What brings messages to an agent without polls and without a webhook."""
        api, wrote = self._api, self._connections.wrote
        outbound = Outbound(self._scale, self.polled, self._goes_out, self._gated, again, wrote)
        if isinstance(api, Discord):
            gateway = Gateway(outbound, api.guilds)
            api.echo = gateway.echo
            return gateway
        if isinstance(api, Slack):
            return SocketMode(outbound, api.patience_s, api.pauses_s)
        return None

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
        await self.webhook.close()
        await self._runner.cleanup()

    def put(self, text: str, chat: int = 0) -> int:
        """Queue a message of a chat for the agent, or deliver it to its webhook; return its number."""
        self._said_in.append(self.chats[chat])
        number = len(self._said_in)
        if self.webhook.url:
            event = self._api.event(number, text, chat=chat)
            self.webhook.deliver(event, text, lambda: self.hand_over(number, text))
        elif self._gateway is not None:
            self._gateway.put(number, text, self._api.event(number, text, chat=chat))
        else:
            self._waiting[number] = text
            self._news.set()
        return number

    async def deliver_again(self, text: str, *, other_event: bool = False, chat: int = 0) -> None:
        """Deliver the chat's last message once more, with the same id, or as its other event."""
        number = max(it for it, its_chat in enumerate(self._said_in, 1) if its_chat.place == chat)
        event = self._api.event(number, text, other=other_event, chat=chat)
        if not self.webhook.url and self._gateway is not None:
            return self._gateway.put(number, text, event)
        self.hand_over(number, text)
        await self.webhook.once(event, retry=0 if other_event else 1)

    def hand_over(self, number: int, text: str) -> None:
        """The agent gets this message now: what it sends from here on is the answer."""
        chat = self._chat_of(number)
        self.asked("poll", text, chat.place)
        chat.hand_over(number, self._last_id)

    def _chat_of(self, number: int) -> UserChat:
        return self._said_in[number - 1]

    def _goes_out(self, number: int, text: str) -> bool:
        """A message goes out over a WebSocket now, unless a fault refuses it."""
        if self.refuses("poll"):
            return False
        self.hand_over(number, text)
        return True

    async def _gated(self, request: web.BaseRequest) -> None:
        if self.gate is not None:
            await self.gate("poll", *self._connections.of(request))

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._connections.of(request)
        if self._gateway is not None and request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._gateway.serve(request)
        method, of_path = self._api.route(request.method, request.path, request.host)
        operation, reply = await self.call(method, {**await _parameters(request), **of_path})
        return await self._respond(request, operation, reply)

    async def _asked_in_a_response(self, params: Mapping[str, Any]) -> None:
        await self.call(str(params["method"]).lower(), params)

    async def call(self, method: str, params: Mapping[str, Any]) -> tuple[ChatOperation, ChatResponse]:
        """Do what the agent asks for, unless a fault or the service refuses it."""
        if method == "getupdates":
            return await self._poll(params)
        operation = self._api.operation(method, params)
        place = self._api.chat_of(params) if operation != "other" else -1
        if refusal := self.refuses(operation):
            return operation, self._refused(refusal, place)
        if operation != "other":
            if place not in range(len(self.chats)):
                return operation, self._refused(self._api.no_chat)
            chat = self.chats[place]
            if operation in ("send", "edit"):
                return operation, self._takes(operation, params, chat)
            if operation == "typing":
                chat.typing.show(self._api.shows_typing_s(params) / self._scale, chat.handed)
            if operation == "delete":
                chat.take_back(self._api.sent_id(params))
        done = self._api.other(method, params)
        return operation, self._refused(done) if isinstance(done, ChatRefusal) else done

    async def _poll(self, params: Mapping[str, Any]) -> tuple[ChatOperation, ChatResponse]:
        self.polled.set()
        waiting = await self._news_for(params)
        operation: ChatOperation = "poll" if waiting else "other"
        if refusal := self.refuses(operation):
            return operation, self._refused(refusal)
        for number, text in waiting.items():
            self.hand_over(number, text)
        events = [self._api.event(number, text, chat=self._chat_of(number).place) for number, text in waiting.items()]
        return operation, ChatResponse({"ok": True, "result": events})

    def _refused(self, refusal: ChatRefusal, chat: int = -1) -> ChatResponse:
        self.asked("refused", refusal.description, chat)
        return self._api.refusal(refusal)

    def _takes(self, operation: ChatOperation, params: Mapping[str, Any], chat: UserChat) -> ChatResponse:
        """Take a text, or a change of one, if the real service would."""
        words = self._api.words_of(params)
        if isinstance(words, ChatRefusal):
            return self._refused(words, chat.place)
        if operation == "send":
            chat.typing.end()
            key = (chat.place, self._api.key_of(params))
            if key in self._sent_by_key and (before := chat.find(id_ := self._sent_by_key[key])):
                return self._api.took(before.words, id_, chat.place)
            self._last_id = id_ = self._last_id + 1
            self._sent_by_key |= {key: id_} if key[1] else {}
            self.asked("send", words, chat.place)
        elif refusal := self._api.refused_edit(words, chat.find(id_ := self._api.sent_id(params))):
            return self._refused(refusal, chat.place)
        chat.show(id_, words)
        return self._api.took(words, id_, chat.place)

    async def _news_for(self, params: Mapping[str, Any]) -> dict[int, str]:
        """The messages from `offset` on; without one, wait for the next message or the timeout."""
        offset, wait_s = int(params.get("offset") or 0), min(float(params.get("timeout") or 0), LONGEST_POLL_S)
        self._waiting = {number: text for number, text in self._waiting.items() if number >= offset}
        self._news.clear()
        if not self._waiting and wait_s:
            await first_of(self._news.wait(), self._clock.sleep(wait_s / self._scale))
        return dict(self._waiting)

    async def _respond(
        self, request: web.BaseRequest, operation: ChatOperation, reply: ChatResponse
    ) -> web.StreamResponse:
        response = web.Response(status=reply.status, headers=reply.headers)
        if reply.body is not None:
            response.body, response.content_type = json.dumps(reply.body).encode(), "application/json"
        conn, written = self._connections.of(request)
        if self.closes:
            response.force_close()
        if self.gate is not None:
            await self.gate(operation, conn, written)
        with contextlib.suppress(ConnectionResetError):  # a fault, or the agent, has closed it
            writer = await response.prepare(request)
            await response.write_eof()
            if writer is not None:
                self._connections.wrote(request, writer.output_size)
        if self.closes or not request.keep_alive:
            # The agent must close: our FIN would pass bytes that a fault holds back, and look like the agent's.
            await asyncio.Event().wait()
        return response

    def _gone(self, handler: object) -> None:
        if (conn := self._connections.gone(handler)) is not None:
            self.left(conn)


async def _parameters(request: web.BaseRequest) -> dict[str, Any]:
    """Read parameters from the query string, a form or JSON."""
    params: dict[str, Any] = dict(request.query)
    if request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        return params | dict(await request.post())
    with contextlib.suppress(ValueError):
        found = json.loads(await request.text() or "{}")
        params |= found if isinstance(found, dict) else {}
    return params
