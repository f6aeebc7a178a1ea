"""Scripted conversations beside the main one: `conversations:` of a scenario or a script.

conversations:
  - {name: reader, when: {system: You read files}, model: [{text: "It is empty. {nonce}"}]}
"""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Reply
from wedgehog.fake_llm.script.items import ConfigModel, ReplyConfig
from wedgehog.fake_llm.script.side_conversations import SIDE, SUBAGENT, root_of
from wedgehog.fake_llm.script.when import Pattern, is_regex

RESERVED = ("main", "background", "compaction", SUBAGENT, SIDE)


def _free(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"{name!r} has a meaning of its own: choose another name")
    return name


ConversationName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$"), AfterValidator(_free)]


class ConversationWhen(ConfigModel):
    """Which requests belong to it; all that is written must hold. Patterns are as in a script's `when`."""

    system: Pattern | None = None
    """In the system text."""
    opening: Pattern | None = None
    """In what the user says before the model's first reply."""
    tools: list[str] | None = None
    """All of them are advertised."""
    model_name: Pattern | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> "ConversationWhen":
        if not any(getattr(self, key) is not None for key in type(self).model_fields):
            raise ValueError("expected one of system, opening, tools and model_name")
        return self

    def holds(self, conversation: Conversation) -> bool:
        """Whether a request belongs to it."""
        system = "\n".join([message.text for message in conversation.messages if message.role == "system"])
        texts = {"system": system, "opening": root_of(conversation), "model_name": conversation.model}
        named = {tool.name for tool in conversation.tools}
        return named.issuperset(self.tools or ()) and all(
            matches(pattern, text) for key, text in texts.items() if (pattern := getattr(self, key)) is not None
        )


def matches(pattern: str, text: str) -> bool:
    """Whether a text holds a substring in any case, or fits a /regular expression/."""
    if is_regex(pattern):
        return re.search(pattern[1:-1], text) is not None
    return pattern.casefold() in text.casefold()


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


def name_of(conversations: Sequence[ConversationConfig], conversation: Conversation) -> str:
    """The name of the first one to which a request belongs; empty if there is none."""
    return next((it.name for it in conversations if it.when.holds(conversation)), "")


def doubled(conversations: Sequence[ConversationConfig]) -> int | None:
    """The place of a second conversation of one name."""
    names = [it.name for it in conversations]
    return next((at for at, name in enumerate(names) if name in names[:at]), None)
