"""WhatsApp's Cloud API, https://developers.facebook.com/docs/whatsapp/cloud-api.

```
chat service ─▶ POST /webhook {"entry": [{"changes": [{"value": {"messages": [{"id": "wamid.8", …}]}}]}]}      agent
chat service ◀─ 200 within twenty seconds, else it comes again                                                  agent
agent ─▶ POST /v22.0/7/messages {"to": "15550007", "type": "text", "text": {"body": "Hi!"}}
agent ◀─ {"messaging_product": "whatsapp", "contacts": […], "messages": [{"id": "wamid.100"}]}
```

Each delivery is signed with the agent's key. A message cannot be changed or deleted.
"""

import hashlib
import hmac
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

LONGEST_TEXT = 4096
"""https://developers.facebook.com/docs/whatsapp/cloud-api/messages/text-messages"""
NUMBER: Final = re.compile(r"\(#(\d+)\)")
"""Of an error, at the beginning of its description."""
USER, PHONE = 15550007, "7"
"""The number of the first chat's user, after which the next ones follow, and the id of the agent's own."""


class WhatsApp(ChatApi):
    """Its methods and responses. A message comes again with growing pauses; the vendor says no times."""

    patience_s = 20.0
    no_chat = ChatRefusal(400, "(#131030) Recipient phone number not in allowed list")

    def __init__(self, secret: str) -> None:
        """`secret` signs each delivery."""
        self._secret, self._moments = secret, Moments()
        self._read_in: dict[str, int] = {}
        """The chat of each message of a user, by its id."""

    def pauses_s(self) -> Iterator[float]:
        """Growing ones."""
        return growing_pauses_s()

    def operation(self, method: str, params: Mapping[str, Any]) -> ChatOperation:
        """One method sends, and says that a message was read or that the agent writes."""
        if method != "messages":
            return "other"
        if "typing_indicator" in params:
            return "typing"
        return "other" if params.get("status") == "read" else "send"

    def words_of(self, params: Mapping[str, Any]) -> str | ChatRefusal:
        """The body of the text."""
        text = params.get("text")
        words = str(text.get("body") or "") if isinstance(text, Mapping) else ""
        if not words.strip():
            return ChatRefusal(400, "(#100) The parameter text['body'] is required.")
        too_long = f"(#100) Param text['body'] must be at most {LONGEST_TEXT} characters long."
        return ChatRefusal(400, too_long) if len(words) > LONGEST_TEXT else words

    def chat_of(self, params: Mapping[str, Any]) -> int:
        """By its user's number, or for a sign that the agent writes, by the message that it has read."""
        digits = re.sub(r"\D", "", str(params.get("to", "")))
        return int(digits) - USER if digits else self._read_in.get(str(params.get("message_id", "")), -1)

    def sent_id(self, params: Mapping[str, Any]) -> int:
        """None: what was sent stays."""
        return 0

    def refused_edit(self, words: str, before: Sent | None) -> ChatRefusal | None:
        """No request changes a message."""
        return ChatRefusal(400, "(#100) Unsupported post request")

    def took(self, words: str, id_: int, chat: int = 0) -> ChatResponse:
        """The message's id."""
        contacts = [{"input": str(USER + chat), "wa_id": str(USER + chat)}]
        return ChatResponse(
            {"messaging_product": "whatsapp", "contacts": contacts, "messages": [{"id": f"wamid.{id_}"}]}
        )

    def other(self, method: str, params: Mapping[str, Any]) -> ChatResponse:
        """Success."""
        return ChatResponse({"success": True})

    def refusal(self, refusal: ChatRefusal) -> ChatResponse:
        """An error of the Graph API; it has no header with a time to wait."""
        numbered = NUMBER.match(refusal.description)
        code = int(numbered[1]) if numbered else {429: 130429}.get(refusal.code, 131000)
        error = {"message": refusal.description, "type": "OAuthException", "code": code, "fbtrace_id": "A7"}
        return ChatResponse({"error": error}, refusal.code)

    def event(self, number: int, text: str, *, other: bool = False, chat: int = 0) -> dict[str, Any]:
        """A notification with one message."""
        user, id_ = str(USER + chat), f"wamid.U{number}"
        self._read_in[id_] = chat
        said = {
            "from": user,
            "id": id_,
            "timestamp": str(self._moments.of(-number) // 1_000_000),
            "type": "text",
            "text": {"body": text},
        }
        value = {
            "messaging_product": "whatsapp",
            "metadata": {"display_phone_number": "15550000", "phone_number_id": PHONE},
            "contacts": [{"profile": {"name": name_of(chat)}, "wa_id": user}],
            "messages": [said],
        }
        changes = [{"field": "messages", "value": value}]
        return {"object": "whatsapp_business_account", "entry": [{"id": "7", "changes": changes}]}

    def event_headers(self, body: bytes, retry: int) -> dict[str, str]:
        """The signature; nothing says that it is a retry."""
        return {"X-Hub-Signature-256": f"sha256={hmac.new(self._secret.encode(), body, hashlib.sha256).hexdigest()}"}
