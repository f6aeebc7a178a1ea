"""Token counts, scripted or estimated from characters; their distribution over a stream, and the client's limit."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from wedgehog.fake_llm.conversation import Conversation, Message
from wedgehog.fake_llm.reply import Item, Reply, Text, Thinking, ToolCall, Usage
from wedgehog.fake_llm.request import json_object
from wedgehog.fake_llm.value import value

CHARS_PER_TOKEN = 4
_TOKENS_PER_MESSAGE = 3


@value
class Billed:
    """The tokens that the provider bills for a reply."""

    input_tokens: int
    output_tokens: int


def tokens_in(text: str) -> int:
    """Estimate the tokens of `text`: a quarter of its characters, rounded up."""
    return _tokens_for(len(text))


def billed(reply: Reply, conversation: Conversation) -> Billed:
    """Count the tokens of a request and of its replies; scripted numbers win, estimates are at least 1."""
    scripted_input = reply.usage.input_tokens if reply.usage else None
    scripted_output = reply.usage.output_tokens if reply.usage else None
    return Billed(
        input_tokens(conversation) if scripted_input is None else scripted_input,
        output_tokens(reply.items) * conversation.copies if scripted_output is None else scripted_output,
    )


def input_tokens(conversation: Conversation) -> int:
    """Estimate the tokens of a request's messages and tools; at least 1."""
    messages = sum([_TOKENS_PER_MESSAGE + _tokens_for(_chars(message)) for message in conversation.messages])
    tools = sum(
        [tokens_in(tool.name + tool.description + json.dumps(dict(tool.schema or {}))) for tool in conversation.tools]
    )
    return max(1, messages + tools)


def output_tokens(items: Iterable[Item]) -> int:
    """Estimate the tokens of a reply; at least 1."""
    return max(1, sum([tokens_in(words(item)) for item in items]))


def words(item: Item) -> str:
    """Return all characters of an item that a model generates."""
    if isinstance(item, Text | Thinking):
        return item.text
    return item.name + arguments(item.args, item.raw_args)


def arguments(args: object, raw_args: str | None) -> str:
    """Return a tool call's arguments as text: compact JSON, or `raw_args` verbatim."""
    if raw_args is not None:
        return raw_args
    return json.dumps(args, ensure_ascii=False, separators=(",", ":"), default=dict)


def args_of(call: ToolCall) -> dict[str, Any] | None:
    """Return a call's arguments as an object, None if `raw_args` is not the text of an object."""
    return dict(call.args) if call.raw_args is None else json_object(call.raw_args.encode(errors="replace"))


def carries_all(call: ToolCall) -> bool:
    """Return True if the text that is sent holds all arguments of a call, perhaps with other characters around them."""
    return call.raw_args is None or (bool(call.args) and arguments(call.args, None) in call.raw_args)


def is_object(text: str) -> bool:
    """Return True if a text is a JSON object, as the arguments of a call must be."""
    return json_object(text.encode(errors="surrogatepass")) is not None


class Meter:
    """Distributes a reply's output tokens over its characters, to count the tokens that each frame delivers.

    >>> meter = Meter(10, 40)
    >>> meter.add(4), meter.add(36)
    (1, 10)
    """

    def __init__(self, output_tokens: int, chars: int) -> None:
        """Deliver `output_tokens` over `chars` characters."""
        self.output_tokens = output_tokens
        self._chars = max(chars, 1)
        self._done = 0

    def add(self, chars: int) -> int:
        """Add `chars` delivered characters; return the tokens delivered so far, partial ones included."""
        self._done += chars
        return self.now

    @property
    def now(self) -> int:
        """Tokens delivered so far."""
        return min(self.output_tokens, -(-self.output_tokens * self._done // self._chars))


def _tokens_for(chars: int) -> int:
    return -(-chars // CHARS_PER_TOKEN)


def _chars(message: Message) -> int:
    chars = len(message.text)
    for call in message.tool_calls:
        chars += len(call.name) + len(call.arguments)
    for result in message.tool_results:
        chars += len(result.text)
    return chars


def within_limit(reply: Reply, conversation: Conversation) -> Reply:
    """Return what `max_tokens` allows of a reply; all of it if its output tokens or another stop are scripted."""
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
