"""Telegram's bot API, https://core.telegram.org/bots/api.

```
agent ─▶ POST /bot<key>/getUpdates {"offset": 8, "timeout": 30}      waits for a message, or for the timeout
agent ◀─ {"ok": true, "result": [{"update_id": 8, "message": {"chat": {"id": 7}, "text": "Hello"}}]}
agent ─▶ POST /bot<key>/sendMessage {"chat_id": 7, "text": "Hi!"}
```

It refuses a text that is empty, too long, or has markup that it cannot read, and an edit without a change. Other ways
to send are not found, as with an older server; any other method returns `true`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from wedgehog.harness.faults.chat_fault import ChatRefusal
from wedgehog.harness.services.chat.api import (
    ChatApi,
    ChatOperation,
    ChatResponse,
    Moments,
    Sent,
    growing_pauses_s,
    name_of,
)
from wedgehog.harness.services.chat.markup import MarkupError, shown

LONGEST_TEXT = 4096
"""In UTF-16, without markup."""
CHAT_ID = 7
"""Of the first chat and its user; the next one has the next id."""
AGENT: Final = {"id": 42, "is_bot": True, "first_name": "Wedgehog", "username": "wedgehog_bot"}
COMMAND: Final = re.compile(r"/\w{1,32}(@\w+)?(?!\S)", re.ASCII)
OPERATIONS: Final[dict[str, ChatOperation]] = {
    "sendmessage": "send",
    "editmessagetext": "edit",
    "deletemessage": "delete",
    "sendchataction": "typing",
}


class Telegram(ChatApi):
    """Its methods and responses. A webhook gets a message for a day, with growing pauses."""

    patience_s = 60.0
    no_chat = ChatRefusal(400, "Bad Request: chat not found")

    def __init__(self) -> None:
        self._moments = Moments()

    def pauses_s(self) -> Iterator[float]:
        """Growing ones."""
        return growing_pauses_s()

    def operation(self, method: str, params: Mapping[str, Any]) -> ChatOperation:
        """By its name; a poll is known by the service."""
        return OPERATIONS.get(method, "other")

    def words_of(self, params: Mapping[str, Any]) -> str | ChatRefusal:
        """The text without the marks of its `parse_mode`."""
        try:
            words = shown(str(params.get("text") or ""), str(params.get("parse_mode") or ""))
        except MarkupError as wrong:
            return _bad(f"can't parse entities: {wrong}")
        if not words.strip():
            return _bad("message text is empty")
        return _bad("message is too long") if len(words.encode("utf-16-le")) > 2 * LONGEST_TEXT else words

    def chat_of(self, params: Mapping[str, Any]) -> int:
        """By its id."""
        given = str(params.get("chat_id", ""))
        return int(given) - CHAT_ID if given.isdecimal() else -1

    def sent_id(self, params: Mapping[str, Any]) -> int:
        """The one in `message_id`."""
        given = str(params.get("message_id", ""))
        return int(given) if given.isdecimal() else 0

    def refused_edit(self, words: str, before: Sent | None) -> ChatRefusal | None:
        """It must change a message that is there."""
        if before is None:
            return _bad("message to edit not found")
        if words == before.words:
            return _bad(
                "message is not modified: specified new message content and reply markup are exactly the same"
                " as a current content and reply markup of the message"
            )
        return None

    def took(self, words: str, id_: int, chat: int = 0) -> ChatResponse:
        """The message."""
        return ChatResponse({"ok": True, "result": _message(words, AGENT, id_, self._moments.of(id_), CHAT_ID + chat)})

    def other(self, method: str, params: Mapping[str, Any]) -> ChatResponse | ChatRefusal:
        """`true`, but for other ways to send."""
        if method.startswith("send") and method not in OPERATIONS:
            return ChatRefusal(404, "Not Found")
        return ChatResponse({"ok": True, "result": AGENT if method == "getme" else True})

    def refusal(self, refusal: ChatRefusal) -> ChatResponse:
        """With the status in the body too."""
        wait = {} if refusal.retry_after is None else {"parameters": {"retry_after": refusal.retry_after}}
        body = {"ok": False, "error_code": refusal.code, "description": refusal.description, **wait}
        return ChatResponse(body, refusal.code)

    def event(self, number: int, text: str, *, other: bool = False, chat: int = 0) -> dict[str, Any]:
        """An update. The chat has the id of its user."""
        user = {"id": CHAT_ID + chat, "is_bot": False, "first_name": name_of(chat)}
        said = _message(text, user, number, self._moments.of(-number), CHAT_ID + chat)
        return {"update_id": number, "message": said}

    def event_headers(self, body: bytes, retry: int) -> dict[str, str]:
        """None but the usual ones."""
        return {}


def _message(text: str, sender: Mapping[str, Any], id_: int, moment: int, chat_id: int) -> dict[str, Any]:
    """A command at its beginning is marked as one: most libraries know it by that."""
    chat = {"id": chat_id, "type": "private"}
    said = {"message_id": id_, "date": moment // 1_000_000, "chat": chat, "from": sender, "text": text}
    command = COMMAND.match(text)
    return said | ({"entities": [{"type": "bot_command", "offset": 0, "length": command.end()}]} if command else {})


def _bad(why: str) -> ChatRefusal:
    return ChatRefusal(400, f"Bad Request: {why}")
