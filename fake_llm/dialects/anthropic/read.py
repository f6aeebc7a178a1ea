"""Reads the messages of a request for Anthropic."""

from collections.abc import Iterator
from typing import Any

from wedgehog.fake_llm.conversation import Message, ToolCallSeen, ToolResultSeen
from wedgehog.fake_llm.dialects.anthropic.thinking import THOUGHTS
from wedgehog.fake_llm.request import (
    blocks,
    images_in,
    text_of,
)


def messages_in(message: dict[str, Any]) -> Iterator[Message]:
    """Yield the messages that one message of the request stands for: results of tools are a message of their own."""
    content = blocks(message.get("content"))
    text = text_of([block for block in content if block.get("type", "text") == "text"])
    if message.get("role") == "assistant":
        calls = (block for block in content if block.get("type") == "tool_use")
        seen = tuple(ToolCallSeen.of(call.get("id", ""), call, call.get("input")) for call in calls)
        yield Message("assistant", text, seen, thoughts=tuple(map(_thought, filter(is_thought, content))))
        return
    results = tuple(_result(block) for block in content if block.get("type") == "tool_result")
    images = images_in(content)
    if results:
        yield Message("tool", tool_results=results, images=images)
    if text or not results:
        yield Message("system" if message.get("role") == "system" else "user", text, images=() if results else images)


def is_thought(block: dict[str, Any]) -> bool:
    """Return whether a block is a thought, open or redacted."""
    return block.get("type") in THOUGHTS


def _thought(block: dict[str, Any]) -> str:
    return str(block.get("signature") or block.get("data") or block.get("thinking", ""))


def _result(block: dict[str, Any]) -> ToolResultSeen:
    return ToolResultSeen(
        str(block.get("tool_use_id", "")), text_of(block.get("content")), block.get("is_error") is True
    )
