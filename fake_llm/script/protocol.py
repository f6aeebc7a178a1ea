"""Who decides what the model says."""

from __future__ import annotations

from typing import Protocol

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Answer


class UnscriptedError(Exception):
    """No line of the script fits this conversation; the text says why."""


class Script(Protocol):
    """Answers from the conversation alone, so that retries and parallel sessions cannot cross."""

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """Say what `conversation` gets (`call` is for the record only), or raise Unscripted(why)."""
