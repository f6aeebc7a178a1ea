"""The Protocol of a script."""

from typing import Protocol

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Answer


class UnscriptedError(Exception):
    """No line of the script fits a conversation; the text says why."""


class Script(Protocol):
    """Answers only from the conversation, so that retries and parallel sessions get the right answers."""

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """Return the answer to `conversation` (`call` is only for records), or raise UnscriptedError(why)."""
