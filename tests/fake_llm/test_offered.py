"""Tools and images that a provider refuses, in its words, and those that it takes."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import jsonschema
import pytest

from wedgehog.fake_llm.dialects import schema_mistakes
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


STRICT = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}
TUPLE = {"type": "object", "properties": {"a": {"type": "array", "items": [{"type": "string"}]}}}


def having(**property_: Any) -> dict[str, Any]:
    """Return the schema of an object with one property."""
    return {"type": "object", "properties": {"a": property_}}


def anthropic(*, tools: Any = (), image: Any = None, **more: Any) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png"} | (image or {})
    content = [{"type": "text", "text": "Hi"}, *([{"type": "image", "source": source}] if image else [])]
    messages = [{"role": "user", "content": content}]
    return {"model": "m", "max_tokens": 9, "messages": messages, "tools": list(tools), **more}


def custom(name: str = "read", schema: Any = None) -> dict[str, Any]:
    return {"name": name, "input_schema": OBJECT if schema is None else schema}


def chat(*, functions: Any = (), url: str | None = None) -> dict[str, Any]:
    parts = [{"type": "image_url", "image_url": {"url": url}}] if url is not None else []
    message = {"role": "user", "content": [{"type": "text", "text": "Hi"}, *parts]}
    tools = {"tools": [{"type": "function", "function": it} for it in functions]} if functions else {}
    return {"model": "m", "messages": [message], **tools}


def responses(*, functions: Any = (), url: str | None = None) -> dict[str, Any]:
    parts = [{"type": "input_image", "image_url": url}] if url is not None else []
    given = [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}, *parts]}]
    return {"model": "m", "input": given, "tools": [{"type": "function", **it} for it in functions]}


def function(name: str = "read", schema: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "parameters": OBJECT if schema is None else schema, **more}


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
    (ANTHROPIC, anthropic(tools=[custom(schema={})]), "tools.0.custom.input_schema.type: Field required"),
    (
        ANTHROPIC,
        anthropic(tools=[custom(schema={"type": "string"})]),
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    (
        ANTHROPIC,
        anthropic(tools=[custom(schema={"type": "object", "properties": {"filter[name]": {}}})]),
        "tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
    ),
    (
        ANTHROPIC,
        anthropic(tools=[custom(schema=TUPLE)]),
        "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12",
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
        chat(functions=[function(schema=having(type="string", required=True))]),
        "Invalid schema for function 'read': True is not of type 'array'.",
    ),
    (
        OPENAI_CHAT,
        chat(functions=[function(schema=having(type="any"))]),
        "'any' is not valid under any of the given schemas.",
    ),
    (
        OPENAI_CHAT,
        chat(functions=[function(schema=NEEDS_ONE)]),
        "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level.",
    ),
    (
        OPENAI_CHAT,
        chat(functions=[function(schema={"properties": {}})]),
        """schema must be a JSON Schema of 'type: "object"', got 'type: "None"'.""",
    ),
    (
        OPENAI_CHAT,
        chat(functions=[function(schema={"type": "object"})]),
        "Invalid schema for function 'read': In context=(), object schema missing properties.",
    ),
    (
        OPENAI_CHAT,
        chat(functions=[function(schema=having(type=["string", "array"]))]),
        "In context=('properties', 'a', 'type', '1'), array schema missing items.",
    ),
    (
        OPENAI_CHAT,
        chat(functions=[function(schema=having(type="object", additionalProperties={"anyOf": [{"type": "array"}]}))]),
        "In context=('properties', 'a', 'additionalProperties', 'anyOf', '0'), array schema missing items.",
    ),
    (
        OPENAI_CHAT,
        chat(functions=[function(strict=True)]),
        "In context=(), 'additionalProperties' is required to be supplied and to be false.",
    ),
    (
        OPENAI_CHAT,
        chat(functions=[function(schema=OBJECT | {"additionalProperties": False}, strict=True)]),
        "In context=(), 'required' is required to be supplied and to be an array including every key in properties. "
        "Missing 'path'.",
    ),
    (
        OPENAI_RESPONSES,
        responses(
            functions=[
                function(
                    schema=having(allOf=[OBJECT]) | {"required": ["a"], "additionalProperties": False}, strict=True
                )
            ]
        ),
        "In context=('properties', 'a'), 'allOf' is not permitted.",
    ),
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
        responses(functions=[function(schema=NEEDS_ONE | {"properties": {}})]) | {"model": "gpt-4.1"},
        "'anyOf'/'allOf'/'enum'/'const'/'not' at the top level.",
    ),
    (OPENAI_RESPONSES, responses(functions=[function("x" * 129)]), "maximum length 128, but got a string with length"),
    (OPENAI_RESPONSES, responses(functions=[function(schema={"type": "object"})]), "object schema missing properties."),
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
        gemini(functions=[function(schema=having(type="array", items={"type": "array"}))]),
        ".function_declarations[0].parameters.properties[a].items.items: missing field.\n",
    ),
    (
        GEMINI,
        gemini(functions=[function(schema=having(type="integer", enum=[0, 1]))]),
        "function_declarations[0].parameters.properties[0].value.enum[0]' (TYPE_STRING), 0\n",
    ),
    (
        GEMINI,
        gemini(functions=[function(schema=OBJECT | {"required": ["path", "ref"]})]),
        "* GenerateContentRequest.tools[0].function_declarations[0].parameters.required[1]: property is not defined\n",
    ),
    (GEMINI, gemini(functions=[function("1st")]), "Invalid function name. Must start with a letter or an underscore."),
    (GEMINI, gemini(functions=[function("x" * 129)]), "with a maximum length of 128."),
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
    (
        OPENAI_CHAT,
        chat(functions=[function(schema={"type": "object", "properties": {}})], url=f"data:image/png;base64,{PNG}"),
    ),
    (OPENAI_CHAT, chat(functions=[function(schema={}), {"name": "no_parameters"}])),
    (OPENAI_CHAT, chat(functions=[function(schema={"type": "object", "properties": {"filter[name]": {}}})])),
    (OPENAI_CHAT, chat(functions=[function(schema=STRICT, strict=True)])),
    (ANTHROPIC, anthropic(tools=[custom(schema={"type": "object"})])),
    (ANTHROPIC, anthropic(tools=[custom(schema=having(type="object", properties={"a b": {"$ref": "#/$defs/b"}}))])),
    (OPENAI_CHAT, chat(url="https://example.com/a.png")),
    (
        OPENAI_RESPONSES,
        responses(functions=[function("x" * 70, NEEDS_ONE | {"properties": {}})]) | {"model": "gpt-5.6"},
    ),
    (OPENAI_RESPONSES, responses(functions=[function()], url=f"data:image/png;base64,{PNG}")),
    (GEMINI, gemini(functions=[function("x" * 70)], data={"mimeType": "image/png", "data": PNG})),
    (GEMINI, gemini(functions=[function("files.read", having(type="STRING", enum=["a"]))])),
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


NO_SCHEMAS: list[dict[str, Any]] = [
    having(type="any"),
    having(type=["string", "any"]),
    having(type=[]),
    having(required=True),
    having(type="integer", minimum=0, exclusiveMinimum=True),
    having(enum="a"),
    having(type="array", items=[{"type": "string"}]),
    having(anyOf=[]),
    having(anyOf={"type": "string"}),
    having(allOf=[{"properties": []}]),
    {"type": "object", "properties": {"required": ["a"]}},
    {"type": "object", "properties": {}, "required": None},
    {"type": "object", "properties": {}, "required": [1]},
    {"type": "object", "properties": None},
    {"type": "object", "additionalProperties": "no"},
    {"type": "object", "$defs": {"a": {"type": "str"}}},
]
SCHEMAS: list[dict[str, Any]] = [
    OBJECT,
    LOOSE,
    NEEDS_ONE,
    STRICT,
    having(enum=[]),
    having(type="integer", exclusiveMinimum=0, format="int32", nullable=True, example=3),
    {"type": "object", "properties": {"type": {"enum": ["any", None]}, "items": True}, "x-more": [1]},
    {"$defs": {"a": {"$ref": "#/$defs/a"}}, "patternProperties": {"^a(?<b>c)": False}},
]


@pytest.mark.parametrize("schema", [*NO_SCHEMAS, *SCHEMAS])
def test_what_is_no_schema_is_what_the_standard_says(schema: dict[str, Any]):
    """The words are those of the package `jsonschema` for one of the mistakes."""
    validator = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    messages = {error.message for error in validator.iter_errors(schema)}
    found = [*schema_mistakes.wrong(schema)]
    assert bool(found) == bool(messages) == (schema in NO_SCHEMAS)
    assert {*found} <= messages
