"""Thinking blocks, which must come back as they were sent: what the provider refuses of them, in its words.

Only blocks that this session's model has sent are compared; a block from elsewhere passes, since whether its signature
holds is not known.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Refusal, bad
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.reply import Item, Thinking
from wedgehog.fake_llm.request import Memory, Request, blocks, listed, mapped

THOUGHTS: Final = ("thinking", "redacted_thinking")
_CHANGED: Final = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must "
    "remain as they were in the original response."
)
_MISSING: Final = (
    "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost "
    "set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To "
    "avoid this requirement, disable `thinking`. Please consult our documentation at "
    "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
)


def signature_of(item: Thinking) -> str:
    """Return the signature with which the provider sends a thought."""
    return f"Eq{made_up('signature', item.text, length=62)}"


def remember(items: Sequence[Item], ids: Sequence[str], memory: Memory) -> None:
    """Keep a reply's thoughts, and the ids of the tool calls that they led to."""
    thoughts = [item for item in items if isinstance(item, Thinking)]
    for item in thoughts:
        memory.keep(f"signature {signature_of(item)}", item.text)
        memory.keep(f"thought {item.text}", signature_of(item))
    for id_ in ids if thoughts else ():
        memory.keep(f"led to {id_}", True)


def refusals(request: Request) -> Iterator[Refusal]:
    """Yield what is wrong with the thinking blocks of a request."""
    document = request.document or {}
    messages = [mapped(message) for message in listed(document.get("messages"))]
    said = [index for index, message in enumerate(messages) if message.get("role") == "assistant"]
    thinks = mapped(document.get("thinking")).get("type")
    for index in said:
        for number, block in enumerate(blocks(messages[index].get("content"))):
            if block.get("type") == "thinking":
                place = f"messages.{index}.content.{number}"
                on = thinks in ("enabled", "adaptive")
                yield from _block(block, place, request.memory, last=index == said[-1], enabled=on)
    if thinks == "enabled" and said and said[-1] == len(messages) - 2:
        yield from _dropped(messages[said[-1]], messages[-1], f"messages.{said[-1]}", request.memory)


def _dropped(message: dict[str, Any], answer: dict[str, Any], place: str, memory: Memory) -> Iterator[Refusal]:
    """Refuse tool calls without the thinking that led to them, while their results are sent."""
    content = blocks(message.get("content"))
    led = [block for block in content if memory.get(f"led to {block.get('id')}")]
    answered = any(block.get("type") == "tool_result" for block in blocks(answer.get("content")))
    if led and answered and not any(block.get("type") in THOUGHTS for block in content):
        found = f"Expected `thinking` or `redacted_thinking`, but found `{content[0].get('type')}`."
        yield bad(f"{place}.content.0.type: {found} {_MISSING}")


def _block(block: dict[str, Any], place: str, memory: Memory, *, last: bool, enabled: bool) -> Iterator[Refusal]:
    for name in ("signature", "thinking"):
        if name not in block:
            yield bad(f"{place}.thinking.{name}: Field required")
    if not enabled:
        return
    text, signature = str(block["thinking"]), str(block["signature"])
    wanted = memory.get(f"thought {text}")
    if not signature or (wanted is not None and signature != wanted):
        yield bad(f"{place}: Invalid `signature` in `thinking` block")
    sent = memory.get(f"signature {signature}")
    if sent is not None and text not in ("", sent):
        yield bad(f"{place}: {_CHANGED}" if last else f"{place}: Invalid `signature` in `thinking` block")
