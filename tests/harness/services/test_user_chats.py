"""Two users of one agent: each vendor gives each of them a chat of their own, and knows where a message goes."""

import json
import re
from typing import Any

import pytest

from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.services.chat.service import ChatService
from wedgehog.harness.services.chat.vendors import api_of


def service_of(vendor: str, event: Any = "message") -> ChatService:
    """It listens nowhere: its methods are called."""
    return ChatService(WallClock(), 1, api_of(vendor, "k", event, 2), chats=2)


def chat_in(vendor: str, event: dict[str, Any]) -> tuple[str, str]:
    """The user and the chat of an event."""
    if vendor == "telegram":
        return str(event["message"]["from"]["id"]), str(event["message"]["chat"]["id"])
    if vendor == "slack":
        return event["event"]["user"], event["event"]["channel"]
    if vendor == "discord":
        return event["author"]["id"], event["channel_id"]
    value = event["entry"][0]["changes"][0]["value"]
    return value["contacts"][0]["wa_id"], value["messages"][0]["from"]


async def sent(service: ChatService, vendor: str, chat: str, text: str) -> tuple[int, Any]:
    """Status and body of the response to a text."""
    if vendor == "telegram":
        _, response = await service.call("sendmessage", {"chat_id": chat, "text": text})
    elif vendor == "slack":
        _, response = await service.call("chat.postmessage", {"channel": chat, "text": text})
    elif vendor == "discord":
        method, of_path = service._api.route("POST", f"/api/v10/channels/{chat}/messages", "a")
        _, response = await service.call(method, {"content": text, **of_path})
    else:
        _, response = await service.call("messages", {"to": chat, "type": "text", "text": {"body": text}})
    return response.status, response.body


def read_in(service: ChatService) -> list[list[str]]:
    """What each user reads behind the first message."""
    return [[it.words for it in chat.sent_since(number)] for number, chat in enumerate(service.chats, 1)]


PLACES = [
    ("telegram", "message"),
    ("slack", "message"),
    ("slack", "app_mention"),
    ("discord", "message"),
    ("discord", "app_mention"),
    ("whatsapp", "message"),
]


@pytest.mark.parametrize(("vendor", "event"), PLACES)
async def test_each_user_has_a_chat_and_reads_what_is_sent_there(vendor: str, event: str):
    """The answer says the same chat; a message has a number of its own."""
    service = service_of(vendor, event)
    places = []
    for number, chat in enumerate(service.chats, 1):
        assert chat.put("Hello") == number
        service.hand_over(number, "Hello")
        places.append(chat_in(vendor, service._api.event(number, "Hello", chat=chat.place)))
    (first, there), (second, elsewhere) = places
    assert first != second and there != elsewhere
    _, body = await sent(service, vendor, elsewhere, "to the second")
    await sent(service, vendor, there, "to the first")
    assert read_in(service) == [["to the first"], ["to the second"]]
    told = re.findall(r"\w+", json.dumps(body))
    assert elsewhere in told and there not in told


@pytest.mark.parametrize(
    ("vendor", "chat", "status", "says"),
    [
        ("telegram", "9", 400, "Bad Request: chat not found"),
        ("telegram", "@someone", 400, "Bad Request: chat not found"),
        ("slack", "C9", 200, "channel_not_found"),
        ("slack", "general", 200, "channel_not_found"),
        ("discord", "1000027", 404, "Unknown Channel"),
        ("whatsapp", "15550009", 400, "(#131030) Recipient phone number not in allowed list"),
    ],
)
async def test_a_chat_that_is_not_there_is_refused(vendor: str, chat: str, status: int, says: str):
    """In the vendor's words; its users read nothing of it."""
    service = service_of(vendor)
    heard: list[tuple[str, str, int]] = []
    service.asked = lambda *told: heard.append(told)  # type: ignore[assignment]
    for number in (1, 2):
        service.put("Hello", number - 1)
        service.chats[number - 1].hand_over(number, 0)
    found, body = await sent(service, vendor, chat, "Hi")
    assert (found, says in json.dumps(body)) == (status, True)
    assert read_in(service) == [[], []] and [what for what, _, _ in heard] == ["refused"]


async def test_a_message_is_changed_only_in_its_own_chat():
    """And deleted; "typing …" is shown in one chat too."""
    service = service_of("telegram")
    for chat in service.chats:
        service.hand_over(chat.put("Hello"), "Hello")
    _, body = await sent(service, "telegram", "7", "one")
    id_ = body["result"]["message_id"]
    _, refused = await service.call("editmessagetext", {"chat_id": 8, "message_id": id_, "text": "two"})
    assert refused.body is not None and "message to edit not found" in json.dumps(refused.body)
    await service.call("deletemessage", {"chat_id": 8, "message_id": id_})
    await service.call("sendchataction", {"chat_id": 8, "action": "typing"})
    assert read_in(service) == [["one"], []]
    assert [chat.typing.is_shown for chat in service.chats] == [False, True]


async def test_whatsapp_shows_that_the_agent_writes_in_the_chat_of_the_message_that_it_read():
    """Such a request names no number."""
    service = service_of("whatsapp")
    service._api.event(service.put("Hello", 1), "Hello", chat=1)
    read = {"status": "read", "message_id": "wamid.U1", "typing_indicator": {"type": "text"}}
    await service.call("messages", read)
    assert [chat.typing.is_shown for chat in service.chats] == [False, True]


@pytest.mark.parametrize("to", ["D8", "C8", "U8"])
async def test_in_slack_a_user_is_reached_by_direct_messages_too(to: str):
    """Also where the message was a mention in a channel."""
    service = service_of("slack", "app_mention")
    service.hand_over(service.put("Hi", 0), "Hi")
    service.hand_over(service.put("Hello", 1), "Hello")
    await sent(service, "slack", to, "one")
    assert read_in(service) == [[], ["one"]]


async def test_discord_finds_each_users_channel():
    """And both in the server."""
    service = service_of("discord")
    for user, channel in (("1007", "1000007"), ("1008", "1000017")):
        _, found = await service.call("post users/@me/channels", {"recipient_id": user})
        assert isinstance(found.body, dict) and found.body["id"] == channel
    _, missing = await service.call("post users/@me/channels", {"recipient_id": "1"})
    assert missing.status == 404
    (guild,) = service_of("discord", "app_mention")._api.guilds  # type: ignore[attr-defined]
    assert [it["id"] for it in guild["channels"]] == ["1000008", "1000018"]
    assert [it["user"]["id"] for it in guild["members"]] == ["1042", "1007", "1008"]


async def test_the_last_message_of_a_chat_comes_again():
    """Not the last one of all chats."""
    service = service_of("telegram")
    service.put("Hello", 0)
    service.put("Hi", 1)
    await service.call("getupdates", {})
    heard: list[tuple[str, str, int]] = []
    service.asked = lambda *told: heard.append(told)  # type: ignore[assignment]
    service.webhook.url = "http://127.0.0.1:9/"
    await service.chats[0].deliver_again("Hello")
    assert heard == [("poll", "Hello", 0)]


async def test_a_thread_in_slack_begins_with_the_chats_own_first_message():
    """Another user's message begins another one."""
    api = api_of("slack", "k", "both", 2)
    first, other = api.event(1, "Hello"), api.event(2, "Hi", chat=1)
    later = api.event(3, "And?", chat=1)["event"]
    assert "thread_ts" not in first["event"] and "thread_ts" not in other["event"]
    assert later["thread_ts"] == other["event"]["ts"]
