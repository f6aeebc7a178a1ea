"""The role `send_message`: an agent's tool with which its model writes to the user, beside its replies."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from wedgehog.fake_llm.conversation import ToolSpec
from wedgehog.fake_llm.script.roles import filled, kinds_of

SEND_MESSAGE: Final = "send_message"
_NAME: Final = re.compile(
    r"^(mcp__.*__)?message(_(to_)?(the_)?user)?$|(^|[_.])reply$"
    r"|(^|[_.])(send|write|post)_?((chat_?)?message(_(to_)?(the_)?user)?|text|reply)$"
    r"|(^|[_.])(notify|message|tell|text|reply_to)_?(the_)?(user|human)$",
    re.IGNORECASE,
)
_TEXTS: Final = ("message", "text", "content", "body", "msg")
_ACTIONS: Final = ("action", "operation", "command", "method")
_OTHERS: Final = frozenset(
    ("to", "recipient", "recipients", "agent", "agent_id", "agent_name", "teammate", "thread_id")
)
"""With such a required parameter it writes to another agent, or to anyone."""


@dataclass(frozen=True, slots=True)
class MessageTool:
    """A tool that sends a text into the chat of its user."""

    name: str
    parameter: str
    chosen: Mapping[str, str]
    """What it is told to do, if it can do more than send."""
    schema: Mapping[str, Any]

    def arguments(self, text: str) -> dict[str, Any]:
        """Arguments that send this text; other required parameters are filled by their schema."""
        return filled(self.schema, {**self.chosen, self.parameter: text})


def find_message_tool(tools: Sequence[ToolSpec]) -> MessageTool | None:
    """The first advertised tool that writes to the user, or None.

    >>> text = {"type": "string"}
    >>> tool = ToolSpec("message", schema={"properties": {"content": text, "chat_id": text}, "required": ["content"]})
    >>> find_message_tool([tool]).arguments("Hi")
    {'content': 'Hi'}
    """
    return next((found for tool in tools if (found := _message_tool(tool)) is not None), None)


def _message_tool(tool: ToolSpec) -> MessageTool | None:
    schema = tool.schema or {}
    properties = schema.get("properties") or {}
    parameter = next((it for it in _TEXTS if "string" in kinds_of(properties.get(it))), None)
    if parameter is None or not _NAME.search(tool.name) or not _OTHERS.isdisjoint(schema.get("required", ())):
        return None
    return MessageTool(tool.name, parameter, _sends(properties), schema)


def _sends(properties: Mapping[str, Any]) -> dict[str, str]:
    """The choice of sending, as in `action: send`."""
    for name in _ACTIONS:
        given = properties.get(name)
        if isinstance(given, Mapping) and "send" in given.get("enum", ()):
            return {name: "send"}
    return {}
