"""Reads requests for Gemini.

As in Protocol Buffers, names are camelCase or snake_case, and one object can be a list.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.fake_llm.request import Request, call_answered, counted, image_mark, mapped, stops_in, system_first

WIRE: Final = "gemini"
ADDRESS: Final = re.compile(r"/(v1\w*)/(?:[^:]*/)?(?:models|tunedModels)/([^/:]+):(\w+)")
"""The API's version, a model, and a method."""


def parse(request: Request) -> Conversation:
    """Read a request: model and streaming from the path, the rest from the body."""
    document = request.document or {}
    config = field(document, "generationConfig")
    address = ADDRESS.fullmatch(request.path)
    _, model, method = address.groups() if address else ("", "", "")
    system = _text(several(field(field(document, "systemInstruction"), "parts")))
    declared = [
        mapped(one) for tool in several(document.get("tools")) for one in several(field(tool, "functionDeclarations"))
    ]
    return Conversation(
        wire=WIRE,
        model=model,
        stream=method == "streamGenerateContent",
        messages=system_first(system, _messages(several(document.get("contents")))),
        tools=tuple(map(_tool, declared)),
        max_tokens=counted(field(config, "maxOutputTokens")),
        stops=stops_in(field(config, "stopSequences")),
        schema=_schema(config),
    )


def field(value: object, name: str) -> Any:
    """Return a field of an object by its camelCase or snake_case name, else None.

    >>> field({"function_call": 1}, "functionCall")
    1
    """
    found = mapped(value)
    return found[name] if name in found else found.get(_snake(name))


def several(value: object) -> list[Any]:
    """Return a list as it is, an object as a list of one, and anything else as an empty list."""
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else []


@cache
def _snake(name: str) -> str:
    return re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", name)


def _messages(contents: list[Any]) -> Iterator[Message]:
    waiting: list[ToolCallSeen] = []
    for index, content in enumerate(contents):
        parts = [mapped(part) for part in several(field(content, "parts"))]
        text = _text(parts)
        if field(content, "role") == "model":
            found = [mapped(field(part, "functionCall")) for part in parts if field(part, "functionCall") is not None]
            calls = [
                ToolCallSeen.of(call.get("id") or f"{index}/{number}", call, call.get("args") or {})
                for number, call in enumerate(found)
            ]
            waiting += calls
            signed = (field(part, "thoughtSignature") for part in parts)
            yield Message("assistant", text, tuple(calls), thoughts=tuple(str(it) for it in signed if it))
            continue
        answers = [mapped(field(part, "functionResponse")) for part in parts if field(part, "functionResponse")]
        images = tuple(map(image_mark, filter(_is_image, parts)))
        if answers:
            yield Message("tool", tool_results=tuple(_result(answer, waiting) for answer in answers), images=images)
        if text or not answers:
            yield Message("user", text, images=() if answers else images)


def _is_image(part: dict[str, Any]) -> bool:
    data = field(part, "inlineData") or field(part, "fileData")
    return str(field(data, "mimeType")).startswith("image/")


def _text(parts: list[Any]) -> str:
    said = [field(part, "text") for part in parts if not mapped(part).get("thought")]
    return "\n".join(text for text in said if isinstance(text, str) and text)


def _result(answer: dict[str, Any], waiting: list[ToolCallSeen]) -> ToolResultSeen:
    """Read a response; without an id it belongs to the first unanswered call of its name."""
    id_, name = answer.get("id"), answer.get("name")
    call = call_answered(waiting, lambda call: call.id == id_ if id_ else call.name == name)
    told = answer.get("response")
    values = list(told.values()) if isinstance(told, dict) else []
    text = values[0] if len(values) == 1 and isinstance(values[0], str) else json.dumps(told, ensure_ascii=False)
    failed = "error" in mapped(told)
    if id_ or call is None:
        return ToolResultSeen(str(id_ or ""), text, failed)
    return ToolResultSeen(call.id, text, failed, call.arguments)


def _tool(declared: dict[str, Any]) -> ToolSpec:
    schema = field(declared, "parametersJsonSchema") or _lowered(mapped(declared.get("parameters")))
    return ToolSpec(str(declared.get("name", "")), str(declared.get("description", "")), mapped(schema))


def _schema(config: object) -> dict[str, Any] | None:
    wanted = field(config, "responseJsonSchema") or field(config, "responseSchema")
    if isinstance(wanted, dict):
        return mapped(_lowered(wanted))
    return {"type": "object"} if field(config, "responseMimeType") == "application/json" else None


def _lowered(schema: Any) -> Any:
    """Convert types to JSON Schema's: `STRING` is `string`."""
    if isinstance(schema, list):
        return [_lowered(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    typed = {"type": schema["type"].lower()} if isinstance(schema.get("type"), str) else {}
    return {name: _lowered(value) for name, value in schema.items()} | typed
