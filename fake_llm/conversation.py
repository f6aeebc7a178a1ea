"""What a request says, whatever the provider: messages, tools and what is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from wedgehog.fake_llm.value import value

Role = Literal["system", "user", "assistant", "tool"]


@value
class ToolCallSeen:
    """A tool call that the agent sent back in its history; `arguments` is JSON text as it stood there."""

    id: str
    name: str
    arguments: str


@value
class ToolResultSeen:
    """A tool result in the history; `call_id` names the call that it answers."""

    call_id: str
    text: str
    is_error: bool = False


@value
class Message:
    """One message of the history.

    Results always stand in messages with role "tool" (without text of their own) and what people say always in
    role "user", also where a provider puts both into one message: results first, then the text.
    """

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCallSeen, ...] = ()
    tool_results: tuple[ToolResultSeen, ...] = ()


@value
class ToolSpec:
    """A tool that the agent advertises; `schema` is the JSON Schema of its arguments."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] | None = None


@value
class Conversation:
    """A request for a reply. System text is a message with role "system", first.

    `wire` is the dialect's name ("anthropic", "openai-chat"); `schema` is what a structured output must fill,
    None where plain text is asked for. `copies`: how many replies to the same request are asked for.
    """

    wire: str
    model: str
    stream: bool
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int | None = None
    schema: Mapping[str, Any] | None = None
    copies: int = 1
