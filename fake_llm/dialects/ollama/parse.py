"""Reads requests for Ollama."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.fake_llm.request import Request, counted, listed, mapped

WIRE: Final = "ollama"
CHAT: Final = "/api/chat"


def parse(request: Request) -> Conversation:
    """Read a request's body."""
    document = request.document or {}
    wanted = document.get("format")
    return Conversation(
        wire=WIRE,
        model=str(document.get("model", "")),
        stream=document.get("stream") is not False,
        messages=tuple(_messages(document) if request.path == CHAT else _prompt(document)),
        tools=tuple(_tool(mapped(mapped(tool).get("function"))) for tool in listed(document.get("tools"))),
        max_tokens=counted(mapped(document.get("options")).get("num_predict")),
        schema={"type": "object"} if wanted == "json" else wanted if isinstance(wanted, dict) else None,
    )


def only_loads(request: Request) -> bool:
    """Tell if a request says nothing: it loads the model, or with `keep_alive: 0` unloads it, and costs nothing."""
    document = request.document
    return document is not None and not document.get("messages" if request.path == CHAT else "prompt")


def _messages(document: dict[str, Any]) -> Iterator[Message]:
    waiting: list[ToolCallSeen] = []
    for index, message in enumerate(map(mapped, listed(document.get("messages")))):
        role, text = message.get("role"), str(message.get("content") or "")
        if role == "tool":
            yield Message("tool", tool_results=(_result(message, text, waiting),))
        elif role == "assistant":
            given = [mapped(call) for call in listed(message.get("tool_calls"))]
            calls = [_call(call, f"{index}/{number}") for number, call in enumerate(given)]
            waiting += calls
            yield Message("assistant", text, tuple(calls))
        else:
            yield Message("system" if role == "system" else "user", text)


def _prompt(document: dict[str, Any]) -> Iterator[Message]:
    if document.get("system"):
        yield Message("system", str(document["system"]))
    yield Message("user", str(document.get("prompt") or ""))


def _call(call: dict[str, Any], made_up_id: str) -> ToolCallSeen:
    function = mapped(call.get("function"))
    given = json.dumps(function.get("arguments") or {}, ensure_ascii=False)
    return ToolCallSeen(str(call.get("id") or made_up_id), str(function.get("name", "")), given)


def _result(message: dict[str, Any], text: str, waiting: list[ToolCallSeen]) -> ToolResultSeen:
    """Read a result; without an id it belongs to the first call that waits, of its tool where that is named."""
    id_, name = message.get("tool_call_id"), message.get("tool_name") or message.get("name")
    fits = (call for call in waiting if (call.id == id_ if id_ else name in (None, call.name)))
    call = next(fits, None)
    if call:
        waiting.remove(call)
    return ToolResultSeen(str(id_ or (call.id if call else "")), text)


def _tool(function: dict[str, Any]) -> ToolSpec:
    schema = mapped(function.get("parameters"))
    return ToolSpec(str(function.get("name", "")), str(function.get("description", "")), schema)
