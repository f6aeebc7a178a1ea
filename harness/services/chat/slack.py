"""Slack's Events API and Web API, https://docs.slack.dev/apis/events-api and https://docs.slack.dev/apis/web-api.

```
chat service ─▶ POST /slack/events {"type": "event_callback", "event_id": "Ev8", "event": {…}}      agent
chat service ◀─ 200 within three seconds, else it comes again, with `X-Slack-Retry-Num: 1`          agent
agent ─▶ POST /api/chat.postMessage {"channel": "D7", "text": "Hi!"}
agent ◀─ {"ok": true, "channel": "D7", "ts": "1796000000.000100", "message": {"text": "Hi!", …}}
```

An agent without a webhook gets its events in [socket mode](socket_mode.py). Those at a webhook are signed with its key.
A text that is empty or too long is refused with status 200 and `ok: false`.
An app that has subscribed to `app_mention` and to `message.channels` gets two events for a mention, with two ids and
one `ts`.
"""

import hashlib
import hmac
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from wedgehog.harness.faults.chat_fault import ChatRefusal
from wedgehog.harness.services.chat.api import ChatApi, ChatEvent, ChatOperation, ChatResponse, Moments, Sent
from wedgehog.harness.services.chat.socket_mode import socket_url

LONGEST_TEXT = 40_000
"""https://docs.slack.dev/reference/methods/chat.postMessage: a longer text is cut or refused."""
TEAM, APP, AGENT, BOT = "T7", "A7", "U42", "B42"
FIRST = 7
"""The first chat's direct messages, channel and user are D7, C7 and U7, those of the next one D8, C8 and U8."""
KINDS: Final = ("D", "C", "U")
OPERATIONS: Final[dict[str, ChatOperation]] = {
    "chat.postmessage": "send",
    "chat.update": "edit",
    "chat.delete": "delete",
    "assistant.threads.setstatus": "typing",
}
ERRORS: Final = {429: "ratelimited", 503: "service_unavailable"}
"""Its word for a status."""


class Slack(ChatApi):
    """Its methods and responses. An event comes again at once, after a minute, and after five."""

    patience_s = 3.0
    types_s = 120.0
    no_chat = ChatRefusal(200, "channel_not_found")

    def __init__(self, secret: str, subscribed: ChatEvent = "message") -> None:
        """`secret` signs each event."""
        self._secret, self._subscribed, self._moments = secret, subscribed, Moments()
        self._begins: dict[int, int] = {}
        """The first message of each chat."""

    def pauses_s(self) -> Iterator[float]:
        """Three."""
        return iter((0.0, 60.0, 300.0))

    def route(self, verb: str, path: str, host: str) -> tuple[str, Mapping[str, Any]]:
        """The last part of the path; the address of socket mode depends on the host."""
        return path.rpartition("/")[2].lower(), {"host": host}

    def shows_typing_s(self, params: Mapping[str, Any]) -> float:
        """An empty status ends it."""
        return self.types_s if params.get("status") else 0.0

    def operation(self, method: str, params: Mapping[str, Any]) -> ChatOperation:
        """By its name."""
        return OPERATIONS.get(method, "other")

    def words_of(self, params: Mapping[str, Any]) -> str | ChatRefusal:
        """The text, else that of its blocks."""
        words = str(params.get("text") or "").strip() or "\n".join(_texts(params.get("blocks")))
        if not words.strip():
            return ChatRefusal(200, "no_text")
        return ChatRefusal(200, "msg_too_long") if len(words) > LONGEST_TEXT else words

    def chat_of(self, params: Mapping[str, Any]) -> int:
        """By its channel, its direct messages, or its user; a status has the channel's id."""
        given = str(params.get("channel") or params.get("channel_id") or "")
        return int(given[1:]) - FIRST if given[:1] in KINDS and given[1:].isdecimal() else -1

    def sent_id(self, params: Mapping[str, Any]) -> int:
        """The one in `ts`."""
        moment = str(params.get("ts", "")).replace(".", "", 1)
        return self._moments.id_at(int(moment)) if moment.isdecimal() else 0

    def refused_edit(self, words: str, before: Sent | None) -> ChatRefusal | None:
        """A message that is there may be changed, also to the same words."""
        return ChatRefusal(200, "message_not_found") if before is None else None

    def took(self, words: str, id_: int, chat: int = 0) -> ChatResponse:
        """The message, and its time, by which it is known."""
        message = {"type": "message", "user": AGENT, "bot_id": BOT, "text": words, "ts": self._ts(id_)}
        body = {"ok": True, "channel": self._channel(chat), "ts": self._ts(id_), "text": words, "message": message}
        return ChatResponse(body)

    def other(self, method: str, params: Mapping[str, Any]) -> ChatResponse | ChatRefusal:
        """Who the agent is; a way to send in pieces is not known."""
        if method == "apps.connections.open":
            return ChatResponse({"ok": True, "url": socket_url(str(params.get("host", "")))})
        if method.endswith("stream"):
            return ChatRefusal(200, "unknown_method")
        names = {"url": "https://wedgehog.slack.com/", "team": "Wedgehog", "user": "wedgehog"}
        ids = {"team_id": TEAM, "user_id": AGENT, "bot_id": BOT}
        return ChatResponse({"ok": True, **names, **ids})

    def refusal(self, refusal: ChatRefusal) -> ChatResponse:
        """With the status of the request, and the time to wait in a header."""
        error = refusal.description if refusal.code == 200 else ERRORS.get(refusal.code, "internal_error")
        headers = {} if refusal.retry_after is None else {"Retry-After": str(refusal.retry_after)}
        return ChatResponse({"ok": False, "error": error}, refusal.code, headers)

    def event(self, number: int, text: str, *, other: bool = False, chat: int = 0) -> dict[str, Any]:
        """An event callback with a direct message, or a mention in a channel, which is a message there too."""
        mention = self._subscribed != "message"
        kind = {"type": "app_mention"} if mention else {"type": "message", "channel_type": "im"}
        if other:
            kind = {"type": "message", "channel_type": "channel"}
        said, ts = f"<@{AGENT}> {text}" if mention else text, self._ts(-number)
        places = {"channel": self._channel(chat), "ts": ts, "event_ts": ts}
        if self._subscribed == "both" and number > (first := self._begins.setdefault(chat, number)):
            places["thread_ts"] = self._ts(-first)
        user = f"U{FIRST + chat}"
        event = {"client_msg_id": f"m{number}", "team": TEAM, "user": user, "text": said, **places, **kind}
        return {
            "token": "wedgehog",
            "team_id": TEAM,
            "api_app_id": APP,
            "type": "event_callback",
            "event_id": f"Ev{number:08d}{'M' if other else ''}",
            "event_time": int(ts.partition(".")[0]),
            "authorizations": [{"team_id": TEAM, "user_id": AGENT, "is_bot": True, "is_enterprise_install": False}],
            "event": event,
        }

    def event_headers(self, body: bytes, retry: int) -> dict[str, str]:
        """The signature, https://docs.slack.dev/authentication/verifying-requests-from-slack, and a retry's number."""
        now = str(int(time.time()))
        signed = hmac.new(self._secret.encode(), f"v0:{now}:".encode() + body, hashlib.sha256).hexdigest()
        again = {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": "http_timeout"} if retry else {}
        return {"X-Slack-Request-Timestamp": now, "X-Slack-Signature": f"v0={signed}", **again}

    def _channel(self, chat: int) -> str:
        """Where a chat's user writes: in a direct message, or in a channel."""
        return f"{'D' if self._subscribed == 'message' else 'C'}{FIRST + chat}"

    def _ts(self, id_: int) -> str:
        """The time of a message, by which it is known."""
        return "{}.{:06}".format(*divmod(self._moments.of(id_), 1_000_000))


def _texts(blocks: Any) -> list[str]:
    """All texts in blocks, which a form has as JSON."""
    if isinstance(blocks, str):
        try:
            blocks = json.loads(blocks)
        except ValueError:
            return []
    if isinstance(blocks, list):
        return [text for it in blocks for text in _texts(it)]
    if not isinstance(blocks, Mapping):
        return []
    own = [blocks["text"]] if isinstance(blocks.get("text"), str) else []
    return own + [text for it in blocks.values() for text in _texts(it if not isinstance(it, str) else None)]
