"""WhatsApp's form of a chat: signed notifications at a webhook, and texts that stay as they are."""

import hashlib
import hmac
import json
from typing import Any

import pytest

from wedgehog.harness.faults.chat_fault import ChatRefusal
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.services.chat.service import ChatService
from wedgehog.harness.services.chat.whatsapp import LONGEST_TEXT, WhatsApp

SECRET = "s3cret"


@pytest.fixture
def service() -> ChatService:
    """It listens nowhere: its methods are called."""
    made = ChatService(WallClock(), 1, WhatsApp(SECRET))
    made.hand_over(made.put("Hello"), "Hello")
    made._api.event(1, "Hello")
    return made


def text(words: str) -> dict[str, Any]:
    """A request that sends a text."""
    return {"messaging_product": "whatsapp", "to": "15550007", "type": "text", "text": {"body": words}}


async def test_a_text_is_sent_and_has_an_id(service: ChatService):
    """Two texts have two."""
    ids = [(await service.call("messages", text(words)))[1].body["messages"][0]["id"] for words in ("one", "two")]
    assert len(set(ids)) == 2
    assert [it.words for it in service.chats[0].sent_since(1)] == ["one", "two"]


async def test_that_a_message_was_read_and_that_the_agent_writes_is_no_answer(service: ChatService):
    """Both have the method of a text."""
    read = {"status": "read", "message_id": "wamid.U1"}
    assert (await service.call("messages", read))[0] == "other" and not service.chats[0].typing.is_shown
    assert (await service.call("messages", {**read, "typing_indicator": {"type": "text"}}))[0] == "typing"
    assert service.chats[0].typing.is_shown and service.chats[0].sent_since(1) == []


@pytest.mark.parametrize(
    "wrong", [text(" "), text("x" * (LONGEST_TEXT + 1)), {"to": "15550007"}, {**text(""), "text": "Hi"}]
)
async def test_a_text_that_is_empty_or_too_long_is_refused(service: ChatService, wrong: dict[str, Any]):
    """With an error of the Graph API."""
    _, response = await service.call("messages", wrong)
    assert (response.status, response.body["error"]["code"]) == (400, 100)
    assert service.chats[0].sent_since(1) == []


@pytest.mark.parametrize(("status", "code"), [(429, 130429), (500, 131000)])
async def test_a_fault_refuses_with_the_vendors_code(service: ChatService, status: int, code: int):
    """No header says how long to wait."""
    service.refuses = lambda operation: ChatRefusal(status, "x", 3)
    _, response = await service.call("messages", text("one"))
    assert (response.status, response.body["error"]["code"], response.headers) == (status, code, {})


def test_a_notification_is_signed_and_a_second_one_is_the_same():
    """The message's id is all that says so."""
    api = WhatsApp(SECRET)
    event = api.event(3, "Hello")
    (message,) = event["entry"][0]["changes"][0]["value"]["messages"]
    assert message["text"]["body"] == "Hello" and event == api.event(3, "Hello") != api.event(4, "Hello")
    body = json.dumps(event).encode()
    signed = f"sha256={hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()}"
    assert api.event_headers(body, 0) == api.event_headers(body, 2) == {"X-Hub-Signature-256": signed}
