"""Which requests Ollama refuses, and its words for it: those of Go's JSON decoder, mostly.

It needs no key, and never compares calls with results: whatever the history, it is put into the model's template.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Refusal
from wedgehog.fake_llm.dialects.ollama.parse import CHAT
from wedgehog.fake_llm.request import Request, counted, listed, mapped

_GO_KINDS: Final = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
_TEXT: Final = (str, "string")
_OPTIONS: Final = (dict, "map[string]interface {}")
_MESSAGES: Final = (list, "[]api.Message")
_ARGUMENTS: Final = (dict, "api.ToolCallFunctionArguments")


def refuse(request: Request, models: Collection[str] | None) -> Refusal | None:
    """Say why the provider would not answer, or None."""
    return next(_refusals(request, models), None)


def no_model(name: object) -> Refusal:
    """Say that there is no such model."""
    return Refusal(404, f"model '{name}' not found")


def _refusals(request: Request, models: Collection[str] | None) -> Iterator[Refusal]:
    kind = "ChatRequest" if request.path == CHAT else "GenerateRequest"
    if request.document is None:
        yield _bad(_unreadable(request.body, kind))
        return
    yield from _fields(request.document, kind)
    name = request.document.get("model")
    if not name:
        yield _bad("model is required")
    if models is not None and name not in models:
        yield no_model(name)
    if not 0 <= (counted(request.document.get("top_logprobs")) or 0) <= 20:
        yield _bad("top_logprobs must be between 0 and 20")


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
        yield _bad(f"json: cannot unmarshal {_GO_KINDS[type(value)]} into Go struct field {place} of type {go_type}")


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


def _bad(message: str) -> Refusal:
    return Refusal(400, message)
