"""Discord's REST API, https://docs.discord.com/developers/reference; its messages come over the [gateway](gateway.py).

```
agent ─▶ POST /api/v10/channels/1000007/messages {"content": "Hi!", "nonce": "5", "enforce_nonce": true}
agent ◀─ {"id": "1174052782080000100", "content": "Hi!", "author": {"id": "1042", "bot": true, …}, …}
```

Its user writes direct messages that mention the agent, so that one which reads only mentions, or only direct messages,
gets them; or mentions it in the channel of a server. A text that is empty or too long is refused. A request with the
`nonce` of an earlier one sends nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from wedgehog.harness.faults.chat_fault import ChatRefusal
from wedgehog.harness.services.chat.api import ChatApi, ChatOperation, ChatResponse, Moments, Sent
from wedgehog.harness.services.chat.discord_places import (
    AGENT,
    APPLICATION,
    SELF,
    USER,
    DiscordPlace,
    direct,
    in_guild,
)
from wedgehog.harness.services.chat.discord_text import words_of

LONGEST_TEXT = 2000
OPERATIONS: Final[dict[str, ChatOperation]] = {
    "post channels/{id}/messages": "send",
    "patch channels/{id}/messages/{id}": "edit",
    "delete channels/{id}/messages/{id}": "delete",
    "post channels/{id}/typing": "typing",
}
FOUND: Final[dict[str, Any]] = {
    "get users/@me": SELF,
    "get applications/@me": APPLICATION,
    "get oauth2/applications/@me": APPLICATION,
    "put applications/{id}/commands": [],
    "get applications/{id}/commands": [],
}
EMPTY, TOO_LONG, UNKNOWN = "Cannot send an empty message", "Must be 2000 or fewer in length.", "Unknown Message"
NO_CHANNEL = "Unknown Channel"
CODES: Final = {EMPTY: 50006, TOO_LONG: 50035, UNKNOWN: 10008, NO_CHANNEL: 10003}
"""Its own numbers of errors."""
EPOCH_MS = 1_420_070_400_000
"""Of its ids: the first moment of 2015."""
HOSTS: Final = ("discord.com", "discordapp.com", "discord.gg")


class Discord(ChatApi):
    """Its methods and responses. It remembers what was said, because agents read it again."""

    types_s = 10.0
    no_chat = ChatRefusal(404, NO_CHANNEL)

    def __init__(self, *, mention: bool = False, chats: int = 1) -> None:
        """With `mention` a message is in the channel of a server; each of the `chats` has one of its own."""
        self._direct = [direct(it) for it in range(chats)]
        """Where each user reads direct messages, also of an agent that was mentioned elsewhere."""
        self._places = [in_guild(it, chats) for it in range(chats)] if mention else self._direct
        self.guilds = self._places[0].guilds
        self.echo: Callable[[dict[str, Any]], None] = lambda message: None
        """Gets each message of the agent, which the gateway tells the agent too."""
        self._said: dict[int, dict[str, Any]] = {}
        self._moments = Moments()

    def pauses_s(self) -> Iterator[float]:
        """None: it has no webhook."""
        return iter(())

    def route(self, verb: str, path: str, host: str) -> tuple[str, dict[str, str]]:
        """`post channels/{id}/messages`, and the first and the last id in it."""
        parts = [part for part in path.split("/") if part and part != "api" and not _is_version(part)]
        ids = [part for part in parts if part.isdecimal()]
        name = "/".join("{id}" if part.isdecimal() else part for part in parts)
        return f"{verb} {name}".lower(), {
            "host": host,
            "path_id": ids[0] if ids else "",
            "message_id": ids[-1] if ids else "",
        }

    def operation(self, method: str, params: Mapping[str, Any]) -> ChatOperation:
        """By its path."""
        return OPERATIONS.get(method, "other")

    def words_of(self, params: Mapping[str, Any]) -> str | ChatRefusal:
        """The text, its embeds and its attachments."""
        said = _payload(params)
        if len(str(said.get("content") or "")) > LONGEST_TEXT:
            return ChatRefusal(400, TOO_LONG)
        return words_of(said, params) or ChatRefusal(400, EMPTY)

    def key_of(self, params: Mapping[str, Any]) -> str:
        """The nonce, if it counts."""
        said = _payload(params)
        return str(said.get("nonce") or "") if said.get("enforce_nonce") else ""

    def chat_of(self, params: Mapping[str, Any]) -> int:
        """By the channel in the path."""
        places = (*enumerate(self._places), *enumerate(self._direct))
        return next((chat for chat, it in places if it.channel["id"] == params.get("path_id")), -1)

    def sent_id(self, params: Mapping[str, Any]) -> int:
        """That of the message in the path."""
        given = str(params.get("message_id", ""))
        return self._moments.id_at(_moment(int(given))) if given.isdecimal() else 0

    def refused_edit(self, words: str, before: Sent | None) -> ChatRefusal | None:
        """A message that is there may be changed, also to the same words."""
        return ChatRefusal(404, UNKNOWN) if before is None else None

    def took(self, words: str, id_: int, chat: int = 0) -> ChatResponse:
        """The message."""
        if id_ in self._said:
            self._said[id_] |= {"content": words, "edited_timestamp": self._said[id_]["timestamp"]}
        else:
            place = self._places[chat]
            self._said[id_] = self._message(words, AGENT, id_, place)
            self.echo(self._said[id_] | place.event_keys)
        return ChatResponse(self._said[id_])

    def other(self, method: str, params: Mapping[str, Any]) -> ChatResponse | ChatRefusal:
        """What it is asked for about the agent and its channels; a change of anything else is taken."""
        if method in ("get gateway", "get gateway/bot"):
            limit = {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}
            url = gateway_url(str(params.get("host", "")))
            return ChatResponse({"url": url, "shards": 1, "session_start_limit": limit})
        if method == "get channels/{id}/messages":
            return ChatResponse(self._history(params))
        if method == "delete channels/{id}/messages/{id}":
            self._said.pop(self.sent_id(params), None)
        if method == "get channels/{id}/messages/{id}":
            message = self._said.get(self.sent_id(params))
            return ChatRefusal(404, UNKNOWN) if message is None else ChatResponse(message)
        found = FOUND | self._of_places(params)
        if method in found:
            return ChatResponse(found[method]) if found[method] else self.no_chat
        is_change = method.startswith(("put ", "delete ")) or method in OPERATIONS
        return ChatResponse(None, 204) if is_change else ChatRefusal(404, "404: Not Found")

    def refusal(self, refusal: ChatRefusal) -> ChatResponse:
        """With its own number of the error. A time to wait stands in the body and in headers."""
        if refusal.code == 429:
            return _limited(refusal.retry_after or 0)
        body: dict[str, Any] = {"message": refusal.description, "code": CODES.get(refusal.description, 0)}
        if refusal.description == TOO_LONG:
            wrong = {"code": "BASE_TYPE_MAX_LENGTH", "message": TOO_LONG}
            body |= {"message": "Invalid Form Body", "errors": {"content": {"_errors": [wrong]}}}
        return ChatResponse(body, refusal.code)

    def event(self, number: int, text: str, *, other: bool = False, chat: int = 0) -> dict[str, Any]:
        """The message in which the agent is mentioned."""
        place = self._places[chat]
        if number not in self._said:
            said = self._message(f"<@{AGENT['id']}> {text}", place.user, number, place)
            self._said[number] = said | {"mentions": [AGENT]}
        return self._said[number] | place.event_keys

    def event_headers(self, body: bytes, retry: int) -> dict[str, str]:
        """None: no webhook gets it."""
        return {}

    def _of_places(self, params: Mapping[str, Any]) -> dict[str, Any]:
        guilds, id_, to = self.guilds, params.get("path_id"), str(params.get("recipient_id", ""))
        places = (*self._places, *self._direct)
        found: dict[str, Any] = {
            "get users/{id}": next((it.user for it in places if it.user["id"] == id_), USER),
            "get channels/{id}": next((it.channel for it in places if it.channel["id"] == id_), None),
            "post users/@me/channels": next((it.channel for it in self._direct if it.user["id"] == to), None),
            "get users/@me/guilds": [{"id": it["id"], "name": it["name"], "permissions": "0"} for it in guilds],
        }
        if guilds:
            found |= {"get guilds/{id}": guilds[0], "get guilds/{id}/channels": guilds[0]["channels"]}
        return found

    def _history(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The last messages, the newest first."""
        before, limit = str(params.get("before") or ""), str(params.get("limit") or "50")
        said = [it for it in self._said.values() if it["channel_id"] == params.get("path_id")]
        found = [it for it in said if not before.isdecimal() or int(it["id"]) < int(before)]
        return found[::-1][: int(limit) if limit.isdecimal() else 50]

    def _message(self, text: str, author: Mapping[str, Any], id_: int, place: DiscordPlace) -> dict[str, Any]:
        empty: dict[str, list[Any]] = {
            key: [] for key in ("mentions", "mention_roles", "attachments", "embeds", "components", "reactions")
        }
        moment = self._moments.of(id_)
        return {
            "id": str(_snowflake(moment)),
            "type": 0,
            "channel_id": place.channel["id"],
            "author": author,
            "content": text,
            "timestamp": _iso(moment),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": False,
            "pinned": False,
            "flags": 0,
            **empty,
        }


def _snowflake(moment: int) -> int:
    """The id of a message, which grows with the time: https://docs.discord.com/developers/reference#snowflakes."""
    ms, us = divmod(moment, 1000)
    return (ms - EPOCH_MS << 22) + us


def _moment(snowflake: int) -> int:
    return ((snowflake >> 22) + EPOCH_MS) * 1000 + snowflake % (1 << 22)


def _iso(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1_000_000, UTC).isoformat(timespec="microseconds")


def gateway_url(host: str) -> str:
    """Its own name if the agent called it by one, else our address."""
    name = host.partition(":")[0]
    return "wss://gateway.discord.gg" if name.endswith(HOSTS) else f"ws://{host}"


def _is_version(part: str) -> bool:
    return part[0] == "v" and part[1:].isdecimal()


def _payload(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a request with files has beside them as JSON."""
    if "payload_json" not in params:
        return params
    try:
        found = json.loads(str(params["payload_json"]))
    except ValueError:
        return params
    return found if isinstance(found, dict) else params


def _limited(wait_s: int) -> ChatResponse:
    """The header `Via` is there as on the real one: without it, discord.py takes the agent for banned."""
    headers = {
        "Via": "1.1 google",
        "Retry-After": str(wait_s),
        "X-RateLimit-Limit": "5",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset-After": str(float(wait_s)),
        "X-RateLimit-Bucket": "wedgehog",
        "X-RateLimit-Scope": "user",
    }
    body = {"message": "You are being rate limited.", "retry_after": float(wait_s), "global": False}
    return ChatResponse(body, 429, headers)
