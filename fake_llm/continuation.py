"""What is left of a reply when the client sends its beginning back as the last message, for the model to go on."""

from dataclasses import replace

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Item, Reply, Text, Thinking


def continued(reply: Reply, conversation: Conversation) -> Reply:
    """Return the rest of a reply behind the beginning that ends the request; else the reply itself.

    A scripted count of output tokens is that of the whole reply, so the tokens of the rest are estimated.
    """
    said = _beginning(conversation)
    rest = _behind(said, reply.items) if said else None
    if rest is None:
        return reply
    usage = replace(reply.usage, output_tokens=None) if reply.usage else None
    return replace(reply, items=rest, usage=usage)


def _beginning(conversation: Conversation) -> str:
    """Return the text of the last message if the assistant said it, and called no tool."""
    last = conversation.messages[-1] if conversation.messages else None
    return last.text if last is not None and last.role == "assistant" and not last.tool_calls else ""


def _behind(said: str, items: tuple[Item, ...]) -> tuple[Item, ...] | None:
    """Return the items behind the text `said`; None if the reply does not begin with it."""
    for index, item in enumerate(items):
        if isinstance(item, Thinking):
            continue
        if not isinstance(item, Text):
            return None
        if item.text.startswith(said):
            rest = item.behind(len(said))
            return (*((rest,) if rest.text else ()), *items[index + 1 :])
        if not said.startswith(item.text):
            return None
        said = said[len(item.text) :].removeprefix("\n")  # A message's text joins its blocks by line breaks.
    return None
