"""Tools and images that a provider refuses, in its words, and those that it takes."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from wedgehog.fake_llm.dialects.anthropic.wire import ANTHROPIC
from wedgehog.fake_llm.dialects.base import Dialect
from wedgehog.fake_llm.dialects.gemini.wire import GEMINI
from wedgehog.fake_llm.dialects.openai_chat.wire import OPENAI_CHAT
from wedgehog.fake_llm.dialects.openai_responses.wire import OPENAI_RESPONSES
from wedgehog.fake_llm.request import Request

HEADERS = {"anthropic-version": "2023-06-01"}
PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/m:generateContent",
}
PNG = b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()
OBJECT = {"type": "object", "properties": {"path": {"type": "string"}}}
LOOSE = {"type": "object", "properties": {"paths": {"anyOf": [{"type": "array"}, {"type": "null"}]}}}
NEEDS_ONE = {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}


def anthropic(*, tools: Any = (), image: Any = None, **more: Any) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png"} | (image or {})
    content = [{"type": "text", "text": "Hi"}, *([{"type": "image", "source": source}] if image else [])]
    messages = [{"role": "user", "content": content}]
    return {"model": "m", "max_tokens": 9, "messages": messages, "tools": list(tools), **more}


def custom(name: str = "read", schema: Any = None) -> dict[str, Any]:
    return {"name": name, "input_schema": schema or OBJECT}


def chat(*, functions: Any = (), url: str | None = None) -> dict[str, Any]:
    parts = [{"type": "image_url", "image_url": {"url": url}}] if url is not None else []
    message = {"role": "user", "content": [{"type": "text", "text": "Hi"}, *parts]}
    tools = {"tools": [{"type": "function", "function": it} for it in functions]} if functions else {}
    return {"model": "m", "messages": [message], **tools}


def responses(*, functions: Any = (), url: str | None = None) -> dict[str, Any]:
    parts = [{"type": "input_image", "image_url": url}] if url is not None else []
    given = [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}, *parts]}]
    return {"model": "m", "input": given, "tools": [{"type": "function", **it} for it in functions]}


def function(name: str = "read", schema: Any = None) -> dict[str, Any]:
    return {"name": name, "parameters": OBJECT if schema is None else schema}


def gemini(*, functions: Any = (), data: Any = None) -> dict[str, Any]:
    parts = [{"text": "Hi"}, *([{"inlineData": data}] if data else [])]
    return {"contents": [{"role": "user", "parts": parts}], "tools": [{"functionDeclarations": list(functions)}]}


EXPECTED = (
    "Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=')"
)
REFUSED: list[tuple[Dialect, dict[str, Any], str]] = [
    (ANTHROPIC, anthropic(tools=[custom("files.read")]), "tools.0.custom.name: String should match pattern"),
    (ANTHROPIC, anthropic(tools=[custom("x" * 129)]), "tools.0.custom.name: String should have at most 128 characters"),
    (ANTHROPIC, anthropic(tools=[custom(), custom()]), "tools: Tool names must be unique."),
    (
        ANTHROPIC,
        anthropic(tools=[custom("a"), custom(schema=NEEDS_ONE)]),
        "tools.1.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
    ),
    (
        ANTHROPIC,
        anthropic(system=[{"type": "text", "text": "", "cache_control": {"type": "ephemeral"}}]),
        "system.0: cache_control cannot be set for empty text blocks",
    ),
    (ANTHROPIC, anthropic(image={"data": "a b!"}), "messages.0.content.1.image.source.base64: invalid base64 data"),
    (
        ANTHROPIC,
        anthropic(image={"data": PNG, "media_type": "image/bmp"}),
        "media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    ),
    (
        ANTHROPIC,
        anthropic(image={"data": PNG, "media_type": "image/jpeg"}),
        "messages.0.content.1.image.source.base64.data: Image does not match the provided media type image/jpeg",
    ),
    (ANTHROPIC, anthropic(image={"data": ""}), "image.source.base64: image cannot be empty"),
    (
        ANTHROPIC,
        anthropic(image={"data": "A" * 5_242_884}),
        "image exceeds 5 MB maximum: 5242884 bytes > 5242880 bytes",
    ),
    (
        OPENAI_CHAT,
        chat(functions=[function("files.read")]),
        "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern "
        "'^[a-zA-Z0-9_-]+$'.",
    ),
    (
        OPENAI_CHAT,
        chat(functions=[function("x" * 71)]),
        "string too long. Expected a string with maximum length 64, but got a string with length 71 instead.",
    ),
    (
        OPENAI_CHAT,
        chat(functions=[function(f"f{number}") for number in range(150)]),
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 150",
    ),
    (
        OPENAI_CHAT,
        chat(functions=[function(schema=LOOSE)]),
        "function 'read': In context=('properties', 'paths', 'anyOf', '0'), array schema missing items.",
    ),
    (OPENAI_CHAT, chat(functions=[function(schema=[])]), "function 'read': [] is not of type 'object', 'boolean'."),
    (
        OPENAI_CHAT,
        chat(url="iVBORw0KGgo="),
        f"Invalid image URL: 'messages[0].content[1].image_url.url'. {EXPECTED}, but got a value without the 'data:' "
        "prefix.",
    ),
    (OPENAI_CHAT, chat(url="data:image/png;base64,a b!"), "but got an invalid base64-encoded value."),
    (
        OPENAI_RESPONSES,
        responses(functions=[function("a b")]),
        "Invalid 'tools[0].name': string does not match pattern.",
    ),
    (OPENAI_RESPONSES, responses(functions=[function(schema=LOOSE)]), "array schema missing items."),
    (
        OPENAI_RESPONSES,
        responses(functions=[{"type": "namespace", "name": "crm", "tools": [{"type": "function", **function("a b")}]}]),
        "Invalid 'tools[0].tools[0].name': string does not match pattern.",
    ),
    (
        OPENAI_RESPONSES,
        responses(url="data:image/png;base64,"),
        f"Invalid 'input[0].content[1].image_url'. {EXPECTED}, but got empty base64-encoded bytes.",
    ),
    (
        GEMINI,
        gemini(functions=[function(schema=OBJECT | {"$schema": "x", "additionalProperties": False})]),
        "Unknown name \"$schema\" at 'tools[0].function_declarations[0].parameters': Cannot "
        'find field.\nInvalid JSON payload received. Unknown name "additionalProperties"',
    ),
    (
        GEMINI,
        gemini(functions=[function(schema={"type": "object", "properties": {"a": {"items": {"type": ["string"]}}}})]),
        "Unknown name \"type\" at 'tools[0].function_declarations[0].parameters.properties[0].value.items': Proto "
        "field is not repeating, cannot start list.",
    ),
    (
        GEMINI,
        gemini(data={"mimeType": "image/png", "data": "a b!"}),
        "Invalid value at 'contents[0].parts[1].inline_data.data' (TYPE_BYTES), Base64 decoding failed for \"a b!\"",
    ),
    (GEMINI, gemini(data={"mimeType": "image/jpg", "data": PNG}), "Unsupported MIME type: image/jpg"),
]
TAKEN: list[tuple[Dialect, dict[str, Any]]] = [
    (
        ANTHROPIC,
        anthropic(tools=[custom(schema=LOOSE), {"type": "bash_20250124", "name": "bash"}], image={"data": PNG}),
    ),
    (OPENAI_CHAT, chat(functions=[function(schema=NEEDS_ONE)], url=f"data:image/png;base64,{PNG}")),
    (OPENAI_CHAT, chat(url="https://example.com/a.png")),
    (OPENAI_RESPONSES, responses(functions=[function()], url=f"data:image/png;base64,{PNG}")),
    (GEMINI, gemini(functions=[function("files.read", LOOSE)], data={"mimeType": "image/png", "data": PNG})),
    (GEMINI, gemini(functions=[{"name": "f", "parametersJsonSchema": {"additionalProperties": False}}])),
]


def asked(dialect: Dialect, document: dict[str, Any]) -> Request:
    body = json.dumps(document).encode()
    return Request(1, "POST", PATHS[dialect.WIRE], HEADERS, body, document, key="k")


@pytest.mark.parametrize(("dialect", "document", "words"), REFUSED, ids=[words[:50] for _, _, words in REFUSED])
def test_a_tool_or_an_image_is_refused_in_the_providers_words(dialect: Dialect, document: dict[str, Any], words: str):
    """With 400; it is no mistake in pairing."""
    refusal = dialect.refuse(asked(dialect, document), None)
    assert refusal is not None
    assert (refusal.status, refusal.pairing, words in refusal.message) == (400, False, True), refusal.message


@pytest.mark.parametrize(("dialect", "document"), TAKEN)
def test_what_the_provider_takes_is_taken(dialect: Dialect, document: dict[str, Any]):
    """Each provider has its own limits: what one refuses another takes."""
    assert dialect.refuse(asked(dialect, document), None) is None


def test_an_image_in_a_tools_result_is_looked_at_too():
    """There the place is the result's."""
    use = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    source = {"type": "base64", "media_type": "image/png", "data": "x"}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": source}]}
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [use]}]
    refusal = ANTHROPIC.refuse(
        asked(ANTHROPIC, anthropic(messages=[*said, {"role": "user", "content": [result]}])), None
    )
    assert refusal is not None
    assert refusal.message == "messages.2.content.0.tool_result.content.0.image.source.base64: invalid base64 data"
