"""A webhook gets each message until it takes it, and its response may hold one request."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.services.chat.service import ChatService

PATIENCE_S = 10.0


class Hook:
    """An agent's webhook, which answers with the prepared responses in turn, then with 200."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.responses: list[web.Response] = []
        self.came = asyncio.Event()
        self.slow_s = 0.0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.got.append(await request.json())
        self.came.set()
        await asyncio.sleep(self.slow_s)
        return self.responses.pop(0) if self.responses else web.Response()

    async def until(self, count: int) -> list[dict[str, Any]]:
        """The first messages."""
        while len(self.got) < count:
            self.came.clear()
            await asyncio.wait_for(self.came.wait(), PATIENCE_S)
        return self.got


@pytest.fixture
async def hook() -> AsyncIterator[Hook]:
    """It listens on a free port."""
    made = Hook()
    runner = web.ServerRunner(web.Server(made.handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = "http://{}:{}/hook".format(*runner.addresses[0][:2])  # type: ignore[attr-defined]
    yield made
    await runner.cleanup()


@pytest.fixture
async def service(hook: Any) -> AsyncIterator[ChatService]:
    """Its pauses are a thousand times shorter."""
    async with ChatService(WallClock(), 1000) as made:
        made.webhook.url = hook.url
        made.heard = []  # type: ignore[attr-defined]
        made.asked = lambda what, text, chat: made.heard.append((what, text))  # type: ignore[attr-defined]
        yield made


async def test_a_message_comes_to_the_webhook_and_not_with_a_poll(service: Any, hook: Hook):
    """What is sent from then on is the answer."""
    number = service.put("Hello")
    (update,) = await hook.until(1)
    assert (update["update_id"], update["message"]["text"], service.chats[0].handed) == (number, "Hello", number)
    assert (await service.call("getupdates", {}))[1].body["result"] == []


async def test_a_message_that_is_not_taken_comes_again_with_the_same_id(service: Any, hook: Hook):
    """Each try is a delivery, in the record too."""
    hook.responses = [web.Response(status=500), web.Response(status=302)]
    service.put("Hello")
    await hook.until(3)
    assert hook.got[0] == hook.got[1] == hook.got[2]
    assert service.heard == [("poll", "Hello")] * 3


async def test_one_that_is_taken_too_slowly_comes_again_and_that_is_told(service: Any, hook: Hook):
    """At once, as Slack does; after an error it comes again without that."""
    told: list[str] = []
    service.webhook._again = told.append
    service.webhook._api = SimpleNamespace(
        pauses_s=lambda: iter((0.0, 0.0)), patience_s=100.0, event_headers=lambda body, retry: {}
    )
    hook.slow_s = 1.0
    service.put("Hello")
    await hook.until(3)
    assert told == ["Hello", "Hello"] and hook.got[0] == hook.got[2]
    hook.slow_s, hook.responses = 0.0, [web.Response(status=500)]
    service.put("And now?")
    await hook.until(5)
    assert told == ["Hello", "Hello"]


async def test_one_that_was_taken_is_delivered_again_on_demand(service: Any, hook: Hook):
    """As if the first response had come too late."""
    service.put("Hello")
    await hook.until(1)
    await service.deliver_again("Hello")
    assert hook.got[0] == hook.got[1]


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ('{"method": "sendMessage", "chat_id": 7, "text": "Hi"}', ["Hi"]),
        ('{"method": 3}', []),
        ('["sendMessage"]', []),
        ("thanks", []),
    ],
)
async def test_the_response_may_hold_one_request(service: Any, hook: Hook, body: str, sent: list[str]):
    """Anything else in it means nothing."""
    service.put("Hello")
    await hook.until(1)
    hook.responses = [web.Response(text=body)]
    await service.deliver_again("Hello")
    assert [it.words for it in service.chats[0].sent_since(service.chats[0].handed)] == sent


async def test_a_webhook_that_is_not_there_yet_gets_its_message_later(service: Any, hook: Hook):
    """As of an agent that is started again."""
    there, service.webhook.url = service.webhook.url, "http://127.0.0.1:9/hook"
    service.put("Hello")
    await asyncio.sleep(0)
    service.webhook.url = there
    await hook.until(1)
