"""Reads the input items of OpenAI's Responses API as messages."""

from collections.abc import Iterator
from typing import Any, Final

from wedgehog.fake_llm.conversation import Message, Role, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.fake_llm.dialects.openai_responses.validate import CALLS, RESULTS, type_of
from wedgehog.fake_llm.request import images_in, listed, mapped, text_of

FREE_TEXT: Final = "input"
"""The one argument of a custom tool, as a script sees it."""
_FREE_TEXT_SCHEMA: Final = {"type": "object", "properties": {FREE_TEXT: {"type": "string"}}, "required": [FREE_TEXT]}


def messages_of(items: list[dict[str, Any]]) -> Iterator[Message]:
    """Group items: consecutive texts and calls of the model are one message, and so are consecutive results."""
    said: list[str] = []
    calls: list[ToolCallSeen] = []
    results: list[ToolResultSeen] = []
    images: tuple[str, ...] = ()
    thoughts: list[str] = []
    for item in [*items, {"type": "end", "role": ""}]:
        kind, role = type_of(item), item.get("role")
        if results and kind not in RESULTS:
            yield Message("tool", tool_results=tuple(results), images=images)
            results, images = [], ()
        if (said or calls) and kind not in CALLS and not (role == "assistant" and not calls) and kind != "reasoning":
            yield Message("assistant", "\n".join(said), tuple(calls), thoughts=tuple(thoughts))
            said, calls, thoughts = [], [], []
        if kind == "reasoning":
            thoughts.append(str(item.get("encrypted_content") or item.get("id", "")))
        elif kind in CALLS:
            calls.append(_call(item))
        elif kind in RESULTS:
            results.append(ToolResultSeen(str(item.get("call_id", "")), text_of(item.get("output"))))
            images += images_in(item.get("output"))
        elif role == "assistant":
            said.append(text_of(item.get("content")))
        elif kind == "message":
            content = item.get("content")
            author: Role = "system" if role in ("system", "developer") else "user"
            yield Message(author, text_of(content), images=images_in(content))


def _call(item: dict[str, Any]) -> ToolCallSeen:
    said = item.get("arguments", item.get("input", ""))
    name = ".".join(filter(None, (str(item.get("namespace") or ""), str(item.get("name", "")))))
    return ToolCallSeen(str(item.get("call_id", "")), name, str(said))


def tools_of(tools: list[Any]) -> Iterator[ToolSpec]:
    """Yield the tools that the agent advertises; one of a namespace as `crm.list_orders`.

    No name of a function has a dot, so the namespace can be told apart again.
    """
    for tool in map(mapped, tools):
        if tool.get("type") != "namespace":
            yield tool_of(tool)
        for inner in map(mapped, listed(tool.get("tools"))):
            yield tool_of(inner | {"name": f"{tool.get('name')}.{inner.get('name')}"})


def named(name: str, tools: list[Any]) -> dict[str, str]:
    """Return how a call names its tool: by its name, and by its namespace if it has one."""
    space, _, own = name.rpartition(".")
    spaces = [tool.get("name") for tool in map(mapped, tools) if tool.get("type") == "namespace"]
    return {"name": own, "namespace": space} if space in spaces else {"name": name}


def is_custom(name: str, tools: list[Any]) -> bool:
    """Whether a tool takes a text, in the place of arguments in JSON."""
    return any(tool.get("type") == "custom" and tool.get("name") == name for tool in map(mapped, tools))


def tool_of(tool: dict[str, Any]) -> ToolSpec:
    """Return a tool that the agent advertises."""
    name = str(tool.get("name") or tool.get("type", ""))
    schema = _FREE_TEXT_SCHEMA if tool.get("type") == "custom" else mapped(tool.get("parameters"))
    return ToolSpec(name, str(tool.get("description") or ""), schema)


def schema_of(wanted: dict[str, Any]) -> dict[str, Any] | None:
    """Return the JSON Schema of a structured output, None for plain text."""
    if wanted.get("type") == "json_object":
        return {"type": "object"}
    return mapped(wanted.get("schema")) if "schema" in wanted else None
