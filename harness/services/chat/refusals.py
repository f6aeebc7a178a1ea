"""Texts that Telegram does not take: empty, too long, with markup that it can not read, or an edit without a change."""

from collections.abc import Mapping
from typing import Any

from wedgehog.harness.faults.chat_fault import ChatRefusal
from wedgehog.harness.services.chat.markup import MarkupError, shown
from wedgehog.harness.services.chat.messages import Sent

LONGEST_TEXT = 4096
"""In UTF-16, without markup."""
NOT_FOUND = ChatRefusal(404, "Not Found")


def words_of(params: Mapping[str, Any]) -> str | ChatRefusal:
    """What the user reads of a text that is sent or changed, or the refusal of that text."""
    try:
        words = shown(str(params.get("text") or ""), str(params.get("parse_mode") or ""))
    except MarkupError as wrong:
        return _bad(f"can't parse entities: {wrong}")
    if not words.strip():
        return _bad("message text is empty")
    return _bad("message is too long") if len(words.encode("utf-16-le")) > 2 * LONGEST_TEXT else words


def refused_edit(words: str, before: Sent | None) -> ChatRefusal | None:
    """The refusal of a change to `words`; None where the message may be changed. `before`: None if it is not there."""
    if before is None:
        return _bad("message to edit not found")
    if words == before.words:
        return _bad(
            "message is not modified: specified new message content and reply markup are exactly the same"
            " as a current content and reply markup of the message"
        )
    return None


def _bad(why: str) -> ChatRefusal:
    return ChatRefusal(400, f"Bad Request: {why}")
