"""
agent ── getUpdates, sendMessage, … ──▶ chat service     chat_status   {"ok": false, "error_code": 429, …}
"""

import math
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, ClassVar, Final, Self

from pydantic import Field

from wedgehog.harness.faults.base import Need, fault
from wedgehog.harness.faults.chat_fault import ChatFault, ChatRefusal
from wedgehog.harness.faults.parameters import Seconds, shorter_whole_s

SAID: Final = {
    409: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
}
"""Telegram's own words, where they are not those of the status."""


@fault("chat_status", family="actor")
class ChatStatus(ChatFault):
    """The chat service refuses a request with this status, and does not do what it asks for.

    `at: {chat: poll}`, `send`, `edit` or `typing` says which one. A message that a poll would have brought comes with a
    later one. `retry_after` becomes whole seconds, so a shortened one is rounded up.
    """

    undrawn: ClassVar[tuple[str, ...]] = ("retry_after",)
    code: Annotated[int, Field(ge=400, le=599, examples=[429, 500, 502, 503, 504])]
    retry_after: Seconds | None = None

    @property
    def needs(self) -> tuple[Need, ...]:
        """Only a chat that is polled refuses a second poller."""
        return ("one_poller",) if self.code in SAID else ()

    def scaled(self, factor: float) -> Self:
        """Shorten `retry_after` to whole seconds."""
        wait = self.retry_after
        return self if wait is None else replace(self, retry_after=shorter_whole_s(wait, factor))

    def on_request(self) -> ChatRefusal:
        """The status in Telegram's words."""
        wait = None if self.retry_after is None else math.ceil(self.retry_after)
        phrases = {status.value: status.phrase for status in HTTPStatus}
        said = SAID.get(self.code, phrases.get(self.code, "Error"))
        return ChatRefusal(self.code, said if wait is None else f"{said}: retry after {wait}", wait)
