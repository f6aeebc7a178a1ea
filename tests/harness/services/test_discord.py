"""Discord's form of a chat: requests are known by verb and path, and errors have its own numbers."""

from typing import Any

import aiohttp
import pytest

from wedgehog.harness.faults.chat_fault import ChatRefusal
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.services.chat.discord import LONGEST_TEXT, Discord, gateway_url
from wedgehog.harness.services.chat.discord_places import direct
from wedgehog.harness.services.chat.service import ChatService

CHANNEL = direct(0).channel["id"]
MESSAGES = f"/api/v10/channels/{CHANNEL}/messages"


@pytest.fixture
def service() -> ChatService:
    """It listens nowhere: its methods are called."""
    made = ChatService(WallClock(), 1, Discord())
    made.put("Hello")
    made.hand_over(1, "Hello")
    return made


async def called(service: ChatService, verb: str, path: str, **params: Any) -> tuple[int, Any]:
    """Status and body of a response."""
    method, of_path = service._api.route(verb, path, "127.0.0.1:80")
    _, response = await service.call(method, {**params, **of_path})
    return response.status, response.body


async def sent(service: ChatService, **params: Any) -> str:
    """The id of a message."""
    status, body = await called(service, "POST", MESSAGES, **params)
    assert status == 200
    return str(body["id"])


def words(service: ChatService) -> list[str]:
    """What its user reads."""
    return [it.words for it in service.chats[0].sent_since(1)]


async def test_a_message_is_known_by_its_id(service: ChatService):
    """It can be changed, also to the same words, and deleted."""
    first, second = await sent(service, content="one"), await sent(service, content="two")
    for _ in range(2):
        status, body = await called(service, "PATCH", f"{MESSAGES}/{first}", content="ONE")
        assert (status, body["id"], body["content"]) == (200, first, "ONE")
    assert await called(service, "DELETE", f"{MESSAGES}/{second}") == (204, None)
    assert (await called(service, "GET", f"{MESSAGES}/{second}"))[0] == 404
    assert words(service) == ["ONE"]


@pytest.mark.parametrize(
    ("verb", "path", "content", "status", "code"),
    [
        ("POST", "", " ", 400, 50006),
        ("POST", "", "x" * (LONGEST_TEXT + 1), 400, 50035),
        ("PATCH", "/12", "one", 404, 10008),
        ("GET", "/12", "", 404, 10008),
        ("POST", "/12/crosspost", "", 404, 0),
    ],
)
async def test_a_refusal_has_a_number(service: ChatService, verb: str, path: str, content: str, status: int, code: int):
    """Its user reads nothing of it."""
    found, body = await called(service, verb, MESSAGES + path, content=content)
    assert (found, body["code"]) == (status, code)
    if code == 50035:
        assert body["errors"]["content"]["_errors"][0]["code"] == "BASE_TYPE_MAX_LENGTH"
    assert words(service) == []


async def test_a_limit_says_in_the_body_and_in_headers_how_long_it_lasts(service: ChatService):
    """With the header by which discord.py sees that it is no ban."""
    service.refuses = lambda operation: ChatRefusal(429, "x", 3) if operation == "send" else None
    _, response = await service.call("post channels/{id}/messages", {"path_id": CHANNEL, "content": "one"})
    assert (response.status, response.headers["Retry-After"], bool(response.headers["Via"])) == (429, "3", True)
    assert isinstance(response.body, dict) and response.body["retry_after"] == 3.0
    service.refuses = lambda operation: ChatRefusal(502, "Bad Gateway") if operation == "typing" else None
    assert await called(service, "POST", f"/api/channels/{CHANNEL}/typing") == (
        502,
        {"message": "Bad Gateway", "code": 0},
    )
    assert words(service) == []


async def test_a_second_request_with_the_same_nonce_sends_nothing(service: ChatService):
    """If the agent asks for that; the response is that of the first one."""
    first = await sent(service, content="one", nonce="5", enforce_nonce=True)
    assert await sent(service, content="one", nonce="5", enforce_nonce=True) == first
    assert await sent(service, content="one", nonce="5") != first
    assert words(service) == ["one", "one"]


async def test_an_agent_reads_what_was_said_before(service: ChatService):
    """The newest message first, its own ones too, as they are now."""
    id_ = await sent(service, content="one")
    await called(service, "PATCH", f"{MESSAGES}/{id_}", content="ONE")
    _, found = await called(service, "GET", MESSAGES, limit="10")
    assert [it["content"] for it in found] == ["ONE", "<@1042> Hello"]
    service.put("And now?")
    _, (newest, *_) = await called(service, "GET", MESSAGES)
    assert int(newest["id"]) > int(id_)
    _, before = await called(service, "GET", MESSAGES, before=id_)
    assert [it["content"] for it in before] == ["<@1042> Hello"]
    assert len((await called(service, "GET", MESSAGES, limit="1"))[1]) == 1
    assert (await called(service, "GET", f"{MESSAGES}/{id_}"))[1]["content"] == "ONE"


async def test_its_user_reads_embeds(service: ChatService):
    """Their titles, descriptions and fields."""
    await sent(service, embeds=[{"title": "T", "description": "D", "fields": [{"name": "N", "value": "V"}]}, 3])
    assert words(service) == ["T\nD\nN\nV"]


async def test_its_user_reads_files_that_are_text():
    """A file that is no text is known by its name."""
    async with ChatService(WallClock(), 1, Discord()) as service, aiohttp.ClientSession() as client:
        service.hand_over(service.put("Hello"), "Hello")
        for name, content in (("a.txt", b"long"), ("b.png", b"\xff\xfe\xff")):
            form = aiohttp.FormData(quote_fields=False)
            form.add_field("payload_json", '{"content": "See:"}')
            form.add_field("files[0]", content, filename=name, content_type="application/octet-stream")
            host, port = service.address
            async with client.post(f"http://{host}:{port}{MESSAGES}", data=form) as reply:
                assert (await reply.json())["content"] == f"See:\n{content.decode() if name == 'a.txt' else name}"
        assert words(service) == ["See:\nlong", "See:\nb.png"]


async def test_a_library_finds_the_agent_and_the_gateway(service: ChatService):
    """Under our address, or under the gateway's own name if it was asked under Discord's."""
    for path in ("/api/v10/users/@me", "/api/v10/oauth2/applications/@me"):
        status, body = await called(service, "GET", path)
        assert (status, body["id"]) == (200, "1042")
    _, body = await called(service, "GET", "/api/v10/gateway/bot")
    assert body["url"] == "ws://127.0.0.1:80"
    assert gateway_url("discord.com") == gateway_url("gateway.discord.gg:443") == "wss://gateway.discord.gg"
    assert await called(service, "PUT", f"{MESSAGES}/1/reactions/x/@me") == (204, None)


async def test_typing_shows_for_ten_seconds_or_until_the_next_message(service: ChatService):
    """Twice as long as in Telegram."""
    assert await called(service, "POST", f"/api/v9/channels/{CHANNEL}/typing") == (204, None)
    assert service.chats[0].typing.is_shown and service.chats[0].typing._until_s - WallClock().now() > 5
    await sent(service, content="one")
    assert not service.chats[0].typing.is_shown
