"""What a request says, the same for all providers: messages, tools and options."""

import json
from collections.abc import Mapping
from typing import Any, Literal, Self

from wedgehog.fake_llm.value import value

Role = Literal["system", "user", "assistant", "tool"]


@value
class ToolCallSeen:
    """A tool call in the history; `arguments` is its JSON text as sent."""

    id: str
    name: str
    arguments: str

    @classmethod
    def of(cls, id_: object, function: Mapping[str, Any], args: object) -> Self:
        """Return a call of the function that `function` names; `args` is a JSON value."""
        return cls(str(id_), str(function.get("name", "")), json.dumps(args, ensure_ascii=False))


@value
class ToolResultSeen:
    """A tool result in the history; `call_id` is the id of its call."""

    call_id: str
    text: str
    is_error: bool = False
    asked: str = ""
    """The arguments of its call, where only its place says which call that is: the wire gives calls no id."""

    @property
    def traces(self) -> str:
        """Where a trace of its call may stand: its own text, then the call's arguments."""
        return f"{self.text}\n{self.asked}" if self.asked else self.text


@value
class Message:
    """One message of the history.

    Results are always in messages with role "tool" and without text, and the user's text in role "user"; a provider's
    message with both becomes two: results first, then the text.
    """

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCallSeen, ...] = ()
    tool_results: tuple[ToolResultSeen, ...] = ()
    images: tuple[str, ...] = ()
    """A fingerprint of each image in it, or in its tool results."""
    thoughts: tuple[str, ...] = ()
    """A mark of each reasoning item: its signature, its sealed content, its id or its text."""


@value
class ToolSpec:
    """A tool that the agent advertises; `schema` is the JSON Schema of its arguments."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] | None = None


@value
class Conversation:
    """A request for a reply. System text is a message with role "system", first.

    `wire` is the dialect's name ("anthropic", "openai-chat"); `schema` is a structured output's JSON Schema, None for
    plain text. `copies` is the number of replies that the request asks for, and `stops` are its stop sequences.
    """

    wire: str
    model: str
    stream: bool
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    schema: Mapping[str, Any] | None = None
    copies: int = 1
    stops: tuple[str, ...] = ()

    @property
    def system(self) -> str:
        """Its system text."""
        return "\n".join([message.text for message in self.messages if message.role == "system"])

    @property
    def text(self) -> str:
        """The text of all messages, without results of tools."""
        return "\n".join([message.text for message in self.messages])
