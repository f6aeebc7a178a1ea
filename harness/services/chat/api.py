"""What a chat service of one vendor calls things: its methods, its responses, and what it refuses."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, Literal, Protocol

from wedgehog.harness.faults.chat_fault import ChatRefusal

ChatOperation = Literal["poll", "send", "edit", "delete", "typing", "other"]
"""A poll that returns a message, a message from the agent, a change of one, its removal, a sign that it writes."""

ChatEvent = Literal["message", "app_mention", "both"]
"""What an app of Slack has subscribed to: direct messages, mentions in a channel, or these and all messages there."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message of the agent as its user reads it, and when it came or was changed last."""

    words: str
    at_s: float


@dataclass(frozen=True, slots=True)
class ChatResponse:
    """The response to a request of the agent."""

    body: Mapping[str, Any] | Sequence[Any] | None
    """As JSON; None: the response has no body."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Moments:
    """When each message of a chat was written, in microseconds: no two are equal, and a later one has a later time.

    Bots leave out messages that are old, or older than the last one that they have read.
    """

    def __init__(self) -> None:
        self._by_id: dict[int, int] = {}

    def of(self, id_: int) -> int:
        """The moment of this message; of a new one, now."""
        if id_ not in self._by_id:
            self._by_id[id_] = max(time.time_ns() // 1000, max(self._by_id.values(), default=0) + 1)
        return self._by_id[id_]

    def id_at(self, moment: int) -> int:
        """The message of this moment; 0 if there is none."""
        return next((id_ for id_, it in self._by_id.items() if it == moment), 0)


def name_of(chat: int) -> str:
    """The name of a chat's user."""
    return f"Someone {chat + 1}" if chat else "Someone"


def growing_pauses_s() -> Iterator[float]:
    """The pauses of a vendor that does not publish them, and that delivers a message again for days."""
    return chain((1.0, 2.0, 4.0), repeat(8.0))


class ChatApi(Protocol):
    """One vendor's API. Here an id of an agent's message is a whole number; each vendor has its own form of it."""

    patience_s: float = 60.0
    """Without a response from a webhook after this time a message is delivered again."""
    no_chat: ChatRefusal
    """The refusal of a request that names no chat of the agent."""
    types_s: float = 5.0
    """How long a chat shows that the agent is typing, if no message comes before."""

    def pauses_s(self) -> Iterator[float]:
        """The pauses before a message is delivered again; after the last one it is given up."""

    def route(self, verb: str, path: str, host: str) -> tuple[str, Mapping[str, Any]]:
        """The method that a request calls, and what its address says of the parameters: by default its last part."""
        return path.rpartition("/")[2].lower(), {}

    def operation(self, method: str, params: Mapping[str, Any]) -> ChatOperation:
        """What a method does, by its name in lower case, with these parameters."""

    def shows_typing_s(self, params: Mapping[str, Any]) -> float:
        """How long a request makes the chat show that the agent is typing: 0 ends it."""
        return self.types_s

    def words_of(self, params: Mapping[str, Any]) -> str | ChatRefusal:
        """What the user reads of a text that is sent or changed, or the refusal of that text."""

    def chat_of(self, params: Mapping[str, Any]) -> int:
        """Which chat a request to send, change or delete a message, or to show that it types, is about; -1: none."""

    def key_of(self, params: Mapping[str, Any]) -> str:
        """What a second request to send the same message has in common with the first; empty if nothing."""
        return ""

    def sent_id(self, params: Mapping[str, Any]) -> int:
        """The id of the message that a request is about; 0 if it names none."""

    def refused_edit(self, words: str, before: Sent | None) -> ChatRefusal | None:
        """The refusal of a change to `words`; None where the message may be changed. `before`: None if it is gone."""

    def took(self, words: str, id_: int, chat: int = 0) -> ChatResponse:
        """The response to a text that was sent to this chat, or changed there."""

    def other(self, method: str, params: Mapping[str, Any]) -> ChatResponse | ChatRefusal:
        """The response to any other method, or its refusal."""

    def refusal(self, refusal: ChatRefusal) -> ChatResponse:
        """The response to a request that is refused."""

    def event(self, number: int, text: str, *, other: bool = False, chat: int = 0) -> dict[str, Any]:
        """A message of a chat's user in the form in which the agent gets it; with `other` as its second event."""

    def event_headers(self, body: bytes, retry: int) -> dict[str, str]:
        """Headers of the delivery of a message; `retry` counts from 0."""
