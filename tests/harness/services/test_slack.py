"""Slack's form of a chat: signed events at a webhook, and messages that are known by their time."""

import hashlib
import hmac
import json
from typing import Any

import pytest

from wedgehog.harness.faults.chat_fault import ChatRefusal
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.services.chat.service import ChatService
from wedgehog.harness.services.chat.slack import LONGEST_TEXT, Slack

SECRET = "s3cret"


@pytest.fixture
def service() -> ChatService:
    """It listens nowhere: its methods are called."""
    made = ChatService(WallClock(), 1, Slack(SECRET))
    made.hand_over(made.put("Hello"), "Hello")
    return made


async def called(service: ChatService, method: str, **params: Any) -> dict[str, Any]:
    """The body of a response; its status is 200."""
    _, response = await service.call(method.lower(), {"channel": "D7", **params})
    assert response.status == 200
    return dict(response.body)


def words(service: ChatService) -> list[str]:
    """What its user reads."""
    return [it.words for it in service.chats[0].sent_since(1)]


async def test_a_message_is_known_by_its_time(service: ChatService):
    """It can be changed, also to the same words, and deleted."""
    first = await called(service, "chat.postMessage", channel="D7", text="one")
    second = await called(service, "chat.postMessage", channel="D7", text="two")
    assert first["ok"] and first["ts"] != second["ts"]
    for _ in range(2):
        assert (await called(service, "chat.update", channel="D7", ts=first["ts"], text="ONE"))["ts"] == first["ts"]
    await called(service, "chat.delete", channel="D7", ts=second["ts"])
    assert words(service) == ["ONE"]


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("chat.postMessage", {"text": " "}, "no_text"),
        ("chat.postMessage", {"blocks": "broken"}, "no_text"),
        ("chat.postMessage", {"text": "x" * (LONGEST_TEXT + 1)}, "msg_too_long"),
        ("chat.update", {"text": "one", "ts": "1.2"}, "message_not_found"),
        ("chat.update", {"text": "one"}, "message_not_found"),
        ("chat.startStream", {"channel": "D7"}, "unknown_method"),
    ],
)
async def test_what_slack_refuses_has_status_200(service: ChatService, method: str, params: Any, error: str):
    """An agent that looks at the status alone takes it for sent."""
    assert await called(service, method, **params) == {"ok": False, "error": error}
    assert words(service) == []


@pytest.mark.parametrize("as_text", [True, False])
async def test_its_user_reads_the_texts_of_blocks(service: ChatService, as_text: bool):
    """Where the message has no text beside them."""
    blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "Hi"}}, {"type": "divider"}]
    await called(service, "chat.postMessage", blocks=json.dumps(blocks) if as_text else blocks)
    assert words(service) == ["Hi"]


@pytest.mark.parametrize(
    ("code", "error"), [(429, "ratelimited"), (503, "service_unavailable"), (500, "internal_error")]
)
async def test_a_fault_refuses_with_the_status_and_the_time_to_wait_in_a_header(
    service: ChatService, code: int, error: str
):
    """As its SDKs read them."""
    service.refuses = lambda operation: ChatRefusal(code, "x", 3) if operation == "send" else None
    _, response = await service.call("chat.postmessage", {"channel": "D7", "text": "one"})
    assert (response.status, response.body, response.headers) == (
        code,
        {"ok": False, "error": error},
        {"Retry-After": "3"},
    )
    assert words(service) == [] and (await called(service, "auth.test"))["user_id"] == "U42"


def test_an_event_is_signed_and_a_retry_says_its_number():
    """The number stands in a header, and the event's id is the same."""
    slack = Slack(SECRET)
    event = slack.event(3, "Hello")
    assert event["event"]["type"] == "message" and event["event"]["text"] == "Hello"
    assert event == slack.event(3, "Hello") and event["event_id"] != slack.event(4, "Hello")["event_id"]
    body = json.dumps(event).encode()
    first, again = slack.event_headers(body, 0), slack.event_headers(body, 2)
    base = f"v0:{first['X-Slack-Request-Timestamp']}:".encode() + body
    assert first["X-Slack-Signature"] == "v0=" + hmac.new(SECRET.encode(), base, hashlib.sha256).hexdigest()
    assert "X-Slack-Retry-Num" not in first and again["X-Slack-Retry-Num"] == "2"


def test_a_mention_is_in_a_channel_and_names_the_agent():
    """Such an agent reads no direct messages."""
    event = Slack(SECRET, "app_mention").event(2, "Hello")["event"]
    assert (event["type"], event["channel"], event["text"]) == ("app_mention", "C7", "<@U42> Hello")
    assert "thread_ts" not in event


def test_a_mention_may_come_as_two_events_for_one_message():
    """The ids of the events differ, and all that names the message is the same; later ones are in its thread."""
    slack = Slack(SECRET, "both")
    begins = slack.event(1, "Hi")["event"]["ts"]
    first, second = slack.event(2, "Hello"), slack.event(2, "Hello", other=True)
    assert first["event_id"] != second["event_id"]
    kinds = [first["event"].pop("type"), second["event"].pop("type"), second["event"].pop("channel_type")]
    assert kinds == ["app_mention", "message", "channel"]
    assert first["event"] == second["event"]
    assert first["event"]["thread_ts"] == begins


async def test_a_status_stays_until_a_message_comes_or_an_empty_one_ends_it(service: ChatService):
    """After two minutes it ends by itself."""
    service.hand_over(service.put("Hi"), "Hi")
    asked = {"channel_id": "D7", "thread_ts": "1.0"}
    shown = []
    for status in ("is thinking …", "", "is thinking …"):
        operation, _ = await service.call("assistant.threads.setstatus", {**asked, "status": status})
        shown.append((operation, service.chats[0].typing.is_shown))
    assert shown == [("typing", True), ("typing", False), ("typing", True)]
    assert service.chats[0].typing._until_s - WallClock().now() > 100
    await service.call("chat.postmessage", {"channel": "D7", "text": "Hello"})
    assert not service.chats[0].typing.is_shown
