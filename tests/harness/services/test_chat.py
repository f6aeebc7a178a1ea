"""The small chat service: messages are handed over until they are confirmed, and what the agent sends is heard."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from wedgehog.harness.faults.chat_fault import ChatRefusal
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.services.chat.service import ChatService

PATIENCE_S = 10.0
Call = Callable[..., Any]


class Rig:
    """A service, its client, and the reported messages."""

    def __init__(self, service: ChatService, client: aiohttp.ClientSession) -> None:
        self.service, self.client, self.heard = service, client, []
        service.asked = lambda what, text, chat: self.heard.append((what, text))

    @property
    def sent(self) -> list[str]:
        """What the agent has sent since it got its last message."""
        return [it.words for it in self.service.chats[0].sent_since(self.service.chats[0].handed)]

    async def told(self, method: str, how: str = "json", **words: Any) -> Any:
        """The response to one call."""
        host, port = self.service.address
        async with self.client.post(f"http://{host}:{port}/botK/{method}", **{how: words}) as reply:
            return await asyncio.wait_for(reply.json(), PATIENCE_S)

    async def call(self, method: str, how: str = "json", **words: Any) -> Any:
        """The result of one call."""
        return (await self.told(method, how, **words))["result"]


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    """Polls end a thousand times faster."""
    async with ChatService(WallClock(), 1000) as service, aiohttp.ClientSession() as client:
        yield Rig(service, client)


async def test_a_message_is_handed_over_again_until_an_offset_confirms_it(rig: Rig):
    """An agent that lost a poll's response gets its message with the next."""
    number = rig.service.put("Hello")
    (first,) = await rig.call("getUpdates", offset=0)
    assert (await rig.call("getUpdates", "data", offset=0, timeout=0)) == [first]
    assert (first["update_id"], first["message"]["text"]) == (number, "Hello")
    assert await rig.call("getUpdates", "params", offset=number + 1) == []
    assert rig.heard == [("poll", "Hello")] * 2


async def test_each_message_has_an_id_of_its_own(rig: Rig):
    """Bots leave out a message whose id they know."""
    rig.service.put("Hello")
    rig.service.put("And now?")
    updates = await rig.call("getUpdates", offset=0)
    assert len({update["message"]["message_id"] for update in updates}) == 2


async def test_a_poll_waits_for_news_and_no_longer_than_it_says(rig: Rig):
    """Its seconds are the story's."""
    assert await rig.call("getUpdates", timeout=20) == []
    rig.service._scale = 1
    waiting = asyncio.create_task(rig.call("getUpdates", timeout=30))
    await asyncio.wait_for(rig.service.polled.wait(), PATIENCE_S)
    rig.service.put("Now")
    assert [update["message"]["text"] for update in await asyncio.wait_for(waiting, PATIENCE_S)] == ["Now"]


async def test_what_is_sent_before_a_message_was_handed_over_is_no_answer_to_it(rig: Rig):
    """A late answer to the last one must not pass for one."""
    number = rig.service.put("And now?")
    await rig.call("sendMessage", chat_id=7, text="late")
    assert rig.service.chats[0].handed < number
    (update,) = await rig.call("getUpdates")
    await rig.call("sendMessage", "data", chat_id=update["message"]["chat"]["id"], text="Yes")
    assert (rig.service.chats[0].handed, rig.sent) == (number, ["Yes"])


async def test_what_was_sent_is_known_by_its_id_and_can_be_edited_and_deleted(rig: Rig):
    """An id that is not known, as of a message before, changes nothing."""
    rig.service.put("Hello")
    await rig.call("getUpdates")
    first, second = [await rig.call("sendMessage", chat_id=7, text=text) for text in ("one", "two")]
    edited = await rig.call("editMessageText", "data", chat_id=7, message_id=first["message_id"], text="ONE")
    assert (edited["message_id"], edited["text"]) == (first["message_id"], "ONE")
    await rig.call("deleteMessage", chat_id=7, message_id=second["message_id"])
    for unknown in (1, "last", None):
        assert await rig.call("deleteMessage", chat_id=7, message_id=unknown) is True
    assert rig.sent == ["ONE"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"text": ""}, "message text is empty"),
        ({"text": " \n"}, "message text is empty"),
        ({}, "message text is empty"),
        ({"text": "x" * 4097}, "message is too long"),
        ({"text": "🦔" * 2049}, "message is too long"),
        ({"text": "<b></b>", "parse_mode": "HTML"}, "message text is empty"),
    ],
)
@pytest.mark.parametrize("method", ["sendMessage", "editMessageText"])
async def test_a_text_that_telegram_does_not_take_is_refused(rig: Rig, method: str, words: dict[str, str], why: str):
    """Nobody gets it; the length counts in UTF-16."""
    rig.service.put("Hello")
    await rig.call("getUpdates")
    sent = await rig.call("sendMessage", chat_id=7, text="one")
    host, port = rig.service.address
    url, body = f"http://{host}:{port}/botK/{method}", {"chat_id": 7, "message_id": sent["message_id"], **words}
    async with rig.client.post(url, json=body) as reply:
        told = await asyncio.wait_for(reply.json(), PATIENCE_S)
        assert (reply.status, told) == (400, {"ok": False, "error_code": 400, "description": f"Bad Request: {why}"})
    assert rig.sent == ["one"] and rig.heard[-1] == ("refused", f"Bad Request: {why}")


@pytest.mark.parametrize(
    "words",
    [
        {"text": "x" * 4096},
        {"text": "🦔" * 2048},
        {"text": "<b>" + "x" * 4000 + "&amp;" * 96 + "</b>", "parse_mode": "HTML"},
        {"text": "*" + "x" * 4096 + "*", "parse_mode": "MarkdownV2"},
    ],
)
async def test_the_longest_text_is_taken_and_its_markup_does_not_count(rig: Rig, words: dict[str, str]):
    """As Telegram counts."""
    rig.service.put("Hello")
    await rig.call("getUpdates")
    await rig.call("sendMessage", chat_id=7, **words)
    (sent,) = rig.sent
    assert len(sent.encode("utf-16-le")) == 2 * 4096


async def test_what_its_user_reads_has_no_marks(rig: Rig):
    """Escapes and marks would hide the words of an error, and parts of a long answer."""
    rig.service.put("Hello")
    await rig.call("getUpdates")
    first = await rig.call("sendMessage", chat_id=7, text="*Wait*\\.", parse_mode="MarkdownV2")
    assert (first["text"], rig.sent) == ("Wait.", ["Wait."])
    await rig.call("editMessageText", chat_id=7, message_id=first["message_id"], text="<b>Error</b>", parse_mode="HTML")
    assert rig.sent == ["Error"]


@pytest.mark.parametrize(
    ("method", "words", "why"),
    [
        (
            "sendMessage",
            {"text": "a_b", "parse_mode": "Markdown"},
            "can't parse entities: Can't find end of the entity",
        ),
        ("editMessageText", {"message_id": 100, "text": "one"}, "message is not modified: specified new message"),
        ("editMessageText", {"message_id": 1, "text": "two"}, "message to edit not found"),
        ("editMessageText", {"text": "two"}, "message to edit not found"),
    ],
)
async def test_what_telegram_cannot_read_or_change_is_refused(rig: Rig, method: str, words: dict[str, Any], why: str):
    """Its user goes on to read what was there before."""
    rig.service.put("Hello")
    await rig.call("getUpdates")
    await rig.call("sendMessage", chat_id=7, text="one")
    told = await rig.told(method, chat_id=7, **words)
    assert told["error_code"] == 400 and told["description"].startswith(f"Bad Request: {why}")
    assert rig.sent == ["one"] and rig.heard[-1] == ("refused", told["description"])


async def test_an_edit_of_an_answer_to_an_earlier_message_is_no_answer_to_this_one(rig: Rig):
    """It changes what stands above."""
    rig.service.put("Hello")
    await rig.call("getUpdates")
    sent = await rig.call("sendMessage", chat_id=7, text="one")
    rig.service.put("And now?")
    await rig.call("getUpdates", offset=2)
    await rig.call("editMessageText", chat_id=7, message_id=sent["message_id"], text="two")
    assert rig.sent == []


@pytest.mark.parametrize(
    ("operation", "method", "words"),
    [
        ("send", "sendMessage", {"text": "one"}),
        ("edit", "editMessageText", {"message_id": 100, "text": "one"}),
        ("typing", "sendChatAction", {"action": "typing"}),
    ],
)
async def test_a_request_that_a_fault_refuses_has_no_effect(
    rig: Rig, operation: str, method: str, words: dict[str, Any]
):
    """The response says when to try again."""
    rig.service.put("Hello")
    await rig.call("getUpdates")
    await rig.call("sendMessage", chat_id=7, text="draft")
    refusal = ChatRefusal(429, "Too Many Requests: retry after 3", 3)
    rig.service.refuses = lambda asked: refusal if asked == operation else None
    told = await rig.told(method, chat_id=7, **words)
    assert told == {
        "ok": False,
        "error_code": 429,
        "description": "Too Many Requests: retry after 3",
        "parameters": {"retry_after": 3},
    }
    assert rig.sent == ["draft"] and not rig.service.chats[0].typing.is_shown


async def test_a_message_whose_poll_is_refused_comes_with_a_later_one(rig: Rig):
    """A poll without news is no such poll."""
    polls: list[str] = []

    def refuses(operation: str) -> ChatRefusal | None:
        polls.append(operation)
        return ChatRefusal(502, "Bad Gateway") if operation == "poll" and polls.count("poll") == 1 else None

    rig.service.refuses = refuses
    assert await rig.call("getUpdates") == []
    number = rig.service.put("Hello")
    assert (await rig.told("getUpdates"))["error_code"] == 502
    assert rig.service.chats[0].handed < number
    (update,) = await rig.call("getUpdates")
    assert (update["update_id"], rig.service.chats[0].handed) == (number, number)
    assert polls == ["other", "poll", "poll"]


async def test_the_agent_types_until_its_next_message_or_five_seconds(rig: Rig):
    """As a chat shows it."""
    rig.service._scale = 1
    rig.service.put("Hello")
    await rig.call("getUpdates")
    assert not rig.service.chats[0].typing.is_shown
    await rig.call("sendChatAction", chat_id=7, action="typing")
    assert rig.service.chats[0].typing.is_shown
    await rig.call("sendMessage", chat_id=7, text="Hi")
    assert not rig.service.chats[0].typing.is_shown
    await rig.call("sendChatAction", chat_id=7, action="typing")
    rig.service.chats[0].typing._until_s -= 5
    assert not rig.service.chats[0].typing.is_shown


async def test_another_way_to_send_is_not_found(rig: Rig):
    """What it sends would be lost; an agent that knows older servers sends a plain message then."""
    told = await rig.told("sendRichMessage", chat_id=7, rich_message={"markdown": "Hi"})
    assert told == {"ok": False, "error_code": 404, "description": "Not Found"}
    assert rig.heard == [("refused", "Not Found")], "a report can say why its user got nothing"


async def test_other_methods_are_answered_and_not_recorded(rig: Rig):
    """Typing is no answer."""
    assert await rig.call("sendChatAction", chat_id=7, action="typing") is True
    assert (await rig.call("getMe"))["is_bot"] is True
    assert rig.heard == [] and rig.sent == []


async def test_the_gate_knows_what_it_holds_and_how_much_the_connection_has_carried(rig: Rig):
    """Counted on the wire: heads and bodies of the responses before, and nothing of the one that stands there."""
    held: list[tuple[str, int]] = []

    async def gate(what: str, conn: object, written: int) -> None:
        held.append((what, written))

    rig.service.gate = gate
    reader, writer = await asyncio.open_connection(*rig.service.address)
    seen = 0
    for method in ("getUpdates", "sendMessage", "getMe"):
        writer.write(f"GET /botK/{method}?text=x HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
        size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        await reader.readexactly(size)
        assert held[-1][1] == seen
        seen += len(head) + size
    assert [what for what, _ in held] == ["other", "send", "other"]
    writer.close()


async def test_a_connection_that_is_not_kept_is_closed_by_the_agent_and_then_told(rig: Rig):
    """Our own end would look like the agent's."""
    gone: list[Any] = []
    rig.service.left = gone.append
    reader, writer = await asyncio.open_connection(*rig.service.address)
    mine = writer.get_extra_info("sockname")[:2]
    writer.write(b"GET /botK/getMe HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert b"Wedgehog" in await asyncio.wait_for(reader.readuntil(b"}}"), PATIENCE_S)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(1), 0.1)
    assert gone == []
    writer.close()
    for _ in range(500):
        if gone:
            break
        await asyncio.sleep(0.01)
    assert [tuple(conn) for conn in gone] == [mine]


async def test_a_connection_that_is_closed_under_a_response_is_no_error_of_ours(
    rig: Rig, caplog: pytest.LogCaptureFixture
):
    """As where a fault takes the chat away: nothing of it is printed."""

    async def closes(*_: Any) -> None:
        assert rig.service._runner.server is not None
        for handler in rig.service._runner.server.connections:
            assert handler.transport is not None
            handler.transport.close()

    rig.service.gate = closes
    with pytest.raises(aiohttp.ClientError):
        await rig.call("getUpdates", timeout=0)
    await asyncio.sleep(0)
    assert caplog.records == []
