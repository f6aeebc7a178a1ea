"""The client's limit of output tokens: a longer reply ends there."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Item, Reply, ToolCall, Usage
from wedgehog.fake_llm.usage import CHARS_PER_TOKEN, arguments, output_tokens, tokens_in, words


def within_limit(reply: Reply, conversation: Conversation) -> Reply:
    """Return the part of a reply that the request's `max_tokens` allows, or the reply itself if all of it fits.

    A reply with scripted output tokens, or with another scripted stop than "max_tokens", is sent whole.
    """
    limit = conversation.max_tokens or 0
    scripted = reply.stop not in (None, "max_tokens") or (reply.usage and reply.usage.output_tokens is not None)
    if limit < 1 or scripted or output_tokens(reply.items) <= limit:
        return reply
    usage = Usage(reply.usage.input_tokens if reply.usage else None, limit * conversation.copies)
    return replace(reply, items=tuple(_first(reply.items, limit)), usage=usage, stop="max_tokens")


def cut(item: Item, chars: int) -> Item:
    """Return an item with the first `chars` characters of its text or arguments, at least one fewer than before."""
    if isinstance(item, ToolCall):
        return replace(item, raw_args=_beginning(arguments(item.args, item.raw_args), chars))
    return replace(item, text=_beginning(item.text, chars))


def _first(items: Iterable[Item], tokens: int) -> Iterator[Item]:
    for item in items:
        needed = tokens_in(words(item))
        if needed > tokens:
            chars = tokens * CHARS_PER_TOKEN - (len(item.name) if isinstance(item, ToolCall) else 0)
            if tokens and chars >= 0:  # A call with a cut name is no call.
                yield cut(item, chars)
            return
        yield item
        tokens -= needed


def _beginning(text: str, chars: int) -> str:
    return text[: min(chars, max(0, len(text) - 1))]
