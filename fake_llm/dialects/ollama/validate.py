"""Reads requests for Ollama, which needs no key and never pairs results, and refuses some in its words."""

import json
from collections.abc import Iterator
from typing import Any, Final

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen
from wedgehog.fake_llm.dialects.base import Models, Refusal, bad
from wedgehog.fake_llm.request import Request, call_answered, counted, image_mark, listed, mapped, stops_in, tool_spec

WIRE: Final = "ollama"
CHAT: Final = "/api/chat"

_GO_KINDS: Final = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
_TEXT: Final = (str, "string")
_OPTIONS: Final = (dict, "map[string]interface {}")
_MESSAGES: Final = (list, "[]api.Message")
_ARGUMENTS: Final = (dict, "api.ToolCallFunctionArguments")


def no_model(name: object) -> Refusal:
    """Refuse an unknown model."""
    return Refusal(404, f"model '{name}' not found")


def refusals(request: Request, models: Models) -> Iterator[Refusal]:
    """Yield what the provider refuses, in the order in which it looks."""
    kind = "ChatRequest" if request.path == CHAT else "GenerateRequest"
    if request.document is None:
        yield bad(_unreadable(request.body, kind))
        return
    yield from _fields(request.document, kind)
    name = request.document.get("model")
    if not name:
        yield bad("model is required")
    if models is not None and name not in models:
        yield no_model(name)
    if not 0 <= (counted(request.document.get("top_logprobs")) or 0) <= 20:
        yield bad("top_logprobs must be between 0 and 20")


def _fields(document: dict[str, Any], kind: str) -> Iterator[Refusal]:
    yield from _typed(document, f"{kind}.", {"model": _TEXT, "stream": (bool, "bool"), "options": _OPTIONS})
    if kind == "GenerateRequest":
        yield from _typed(document, f"{kind}.", {"prompt": _TEXT, "system": _TEXT, "suffix": _TEXT})
        return
    place = f"{kind}.messages."
    yield from _typed(document, f"{kind}.", {"messages": _MESSAGES, "tools": (list, "api.Tools")})
    for tool in listed(document.get("tools")):
        yield from _mismatch(tool, dict, f"{kind}.tools", "api.Tool")
    for message in listed(document.get("messages")):
        yield from _mismatch(message, dict, f"{kind}.messages", "api.Message")
        yield from _typed(mapped(message), place, {"role": _TEXT, "content": _TEXT, "thinking": _TEXT})
        yield from _typed(mapped(message), place, {"tool_calls": (list, "[]api.ToolCall")})
        for call in listed(mapped(message).get("tool_calls")):
            function = mapped(mapped(call).get("function"))
            yield from _typed(function, f"{place}tool_calls.function.", {"name": _TEXT, "arguments": _ARGUMENTS})


def _typed(document: dict[str, Any], place: str, wanted: dict[str, tuple[type, str]]) -> Iterator[Refusal]:
    for name, (type_, go_type) in wanted.items():
        yield from _mismatch(document.get(name), type_, f"{place}{name}", go_type)


def _mismatch(value: object, wanted: type, place: str, go_type: str) -> Iterator[Refusal]:
    if value is not None and not isinstance(value, wanted):
        yield bad(f"json: cannot unmarshal {_GO_KINDS[type(value)]} into Go struct field {place} of type {go_type}")


def _unreadable(body: bytes, kind: str) -> str:
    if not body.strip():
        return "missing request body"
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as broken:
        at = getattr(broken, "pos", 0)
        found = body.decode(errors="replace")[at : at + 1]
        return f"invalid character '{found}' looking for beginning of value" if found else "unexpected EOF"
    return f"json: cannot unmarshal {_GO_KINDS.get(type(value), 'null')} into Go value of type api.{kind}"


def parse(request: Request) -> Conversation:
    """Read a request's body."""
    document = request.document or {}
    wanted = document.get("format")
    return Conversation(
        wire=WIRE,
        model=str(document.get("model", "")),
        stream=document.get("stream") is not False,
        messages=tuple(_messages(document) if request.path == CHAT else _prompt(document)),
        tools=tuple(tool_spec(mapped(mapped(tool).get("function"))) for tool in listed(document.get("tools"))),
        max_tokens=counted(mapped(document.get("options")).get("num_predict")),
        stops=stops_in(mapped(document.get("options")).get("stop")),
        schema={"type": "object"} if wanted == "json" else wanted if isinstance(wanted, dict) else None,
    )


def only_loads(request: Request) -> bool:
    """Return True for a request without words: it loads the model, or with `keep_alive: 0` unloads it, and is free."""
    document = request.document
    return document is not None and not document.get("messages" if request.path == CHAT else "prompt")


def _messages(document: dict[str, Any]) -> Iterator[Message]:
    waiting: list[ToolCallSeen] = []
    for index, message in enumerate(map(mapped, listed(document.get("messages")))):
        role, text = message.get("role"), str(message.get("content") or "")
        if role == "tool":
            yield Message("tool", tool_results=(_result(message, text, waiting),))
        elif role == "assistant":
            given = listed(message.get("tool_calls"))
            calls = [_call(mapped(call), f"{index}/{number}") for number, call in enumerate(given)]
            waiting += calls
            thought = message.get("thinking")
            yield Message("assistant", text, tuple(calls), thoughts=(str(thought),) if thought else ())
        else:
            images = tuple(map(image_mark, listed(message.get("images"))))
            yield Message("system" if role == "system" else "user", text, images=images)


def _prompt(document: dict[str, Any]) -> Iterator[Message]:
    if document.get("system"):
        yield Message("system", str(document["system"]))
    yield Message("user", str(document.get("prompt") or ""))


def _call(call: dict[str, Any], made_up_id: str) -> ToolCallSeen:
    function = mapped(call.get("function"))
    return ToolCallSeen.of(call.get("id") or made_up_id, function, function.get("arguments") or {})


def _result(message: dict[str, Any], text: str, waiting: list[ToolCallSeen]) -> ToolResultSeen:
    """Read a result; without an id it belongs to the first unanswered call, of its tool if the tool is named."""
    id_, name = message.get("tool_call_id"), message.get("tool_name") or message.get("name")
    call = call_answered(waiting, lambda call: call.id == id_ if id_ else name in (None, call.name))
    if id_ or call is None:
        return ToolResultSeen(str(id_ or ""), text)
    return ToolResultSeen(call.id, text, asked=call.arguments)
