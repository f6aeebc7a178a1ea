"""Scripted conversations beside the main one: `conversations:` of a scenario or a script.

conversations:
  - {name: reader, when: {system: You read files}, model: [{text: "It is empty. {nonce}"}]}
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from wedgehog.fake_llm.reply import Reply, ToolCall
from wedgehog.fake_llm.script.items import ConfigModel, ReplyConfig
from wedgehog.fake_llm.script.script_file import ConversationName, ConversationWhen, NamedConversation


class ConversationBounds(ConfigModel):
    """What one such conversation may cost in a turn."""

    paid_calls: Annotated[int, Field(ge=0)] | None = None
    attempts: Annotated[int, Field(ge=1)] | None = None
    """Requests of one step."""


class ConversationConfig(ConfigModel):
    """One scripted conversation: the replies for its steps, and its bounds."""

    name: ConversationName
    when: ConversationWhen
    model: list[ReplyConfig] = Field(min_length=1)
    bounds: ConversationBounds = ConversationBounds()

    def replies(self) -> tuple[Reply, ...]:
        """The scripted replies, from step 1 on."""
        return tuple(words.reply() for words in self.model)

    @property
    def tools_called(self) -> frozenset[str]:
        """Names of the tools that its script calls; `subagent` is a role."""
        items = (item for reply in self.replies() for item in reply.items)
        return frozenset(item.name for item in items if isinstance(item, ToolCall))


def doubled(conversations: Sequence[NamedConversation]) -> int | None:
    """The place of a second conversation of one name."""
    names = [it.name for it in conversations]
    return next((at for at, name in enumerate(names) if name in names[:at]), None)
