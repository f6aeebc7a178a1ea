"""Tools and images of a request that OpenAI refuses, in its words; each source is a public report."""

import re
from collections.abc import Iterator
from typing import Any, Final

from wedgehog.fake_llm.dialects import schema_mistakes
from wedgehog.fake_llm.dialects.base import Refusal
from wedgehog.fake_llm.dialects.images import format_of, is_base64
from wedgehog.fake_llm.dialects.openai_common import bad
from wedgehog.fake_llm.request import listed, mapped

_NAME: Final = re.compile(r"^[a-zA-Z0-9_-]+$")
LONGEST_IN_CHAT: Final = 64
LONGEST_IN_RESPONSES: Final = 128
"""Codex sends names of this length since https://github.com/openai/codex/pull/39594 ."""
_MOST_TOOLS: Final = 128
_NOT_ON_TOP: Final = ("oneOf", "anyOf", "allOf", "enum", "const", "not")
_OLDER: Final = re.compile(r"gpt-(3|4)|chatgpt-|o\d")
_EXAMPLE: Final = (
    "a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=')"
)


_UNSUPPORTED: Final = (
    "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
    "['png', 'jpeg', 'gif', 'webp']."
)


def too_many(tools: object) -> Iterator[Refusal]:
    """Refuse more than 128 tools: https://github.com/0x4m4/hexstrike-ai/issues/29 ."""
    count = len(listed(tools))
    if count > _MOST_TOOLS:
        text = f"Expected an array with maximum length {_MOST_TOOLS}, but got an array with length {count} instead."
        yield bad(f"Invalid 'tools': array too long. {text}", "tools", "array_above_max_length")


def older(model: object) -> bool:
    """Whether the Responses API refuses a union on top of a schema for a model.

    https://github.com/BerriAI/litellm/pull/38792

    >>> older("gpt-4.1-mini"), older("gpt-5.1-codex")
    (True, False)
    """
    return _OLDER.match(str(model)) is not None


def function(
    place: str, offered: dict[str, Any], *, longest: int = LONGEST_IN_CHAT, takes_unions: bool = False
) -> Iterator[Refusal]:
    """Refuse a function's name or schema; `takes_unions`: a union may be on top of it.

    Names: https://github.com/brekkylab/ailoy/pull/109 and https://github.com/mrexodia/ida-pro-mcp/issues/129 .
    """
    name, schema = offered.get("name"), offered.get("parameters")
    if isinstance(name, str):
        yield from _name(f"{place}.name", name, longest)
    if schema is None:
        return
    wrong = next(_wrong(schema, takes_unions), "")
    if not wrong and offered.get("strict") is True:
        wrong = next(_not_strict(schema, ()), "")
    if wrong:
        param = f"{place}.parameters"
        yield bad(f"Invalid schema for function '{name}': {wrong}", param, "invalid_function_parameters")


def _wrong(schema: Any, takes_unions: bool) -> Iterator[str]:
    """Say what is wrong with a schema, strict or not; `{}` is taken.

    No JSON Schema: https://github.com/FoundationAgents/OpenManus/issues/1162 ; no object:
    https://github.com/chatanywhere/GPT_API_free/issues/403 ; a union on top:
    https://github.com/BerriAI/litellm/pull/38839 ; no properties:
    https://github.com/tailcallhq/forgecode/issues/1359 ; no items: https://github.com/modelscope/ms-agent/pull/610 .
    """
    yield from (f"{words}." for words in schema_mistakes.wrong(schema))
    if not isinstance(schema, dict) or not schema:
        return
    kind = schema.get("type")
    if kind is None or (isinstance(kind, str) and kind != "object"):
        yield f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    if not takes_unions and any(keyword in schema for keyword in _NOT_ON_TOP):
        keywords = "/".join(map(repr, _NOT_ON_TOP))
        yield f"schema must have type 'object' and not have {keywords} at the top level."
    if kind == "object" and "properties" not in schema:
        yield "In context=(), object schema missing properties."
    yield from _without_items(schema, ())


def _name(place: str, name: str, longest: int) -> Iterator[Refusal]:
    if not _NAME.match(name):
        text = f"string does not match pattern. Expected a string that matches the pattern '{_NAME.pattern}'."
        yield bad(f"Invalid '{place}': {text}", place, "invalid_value")
    if len(name) > longest:
        lengths = f"maximum length {longest}, but got a string with length {len(name)} instead."
        yield bad(
            f"Invalid '{place}': string too long. Expected a string with {lengths}", place, "string_above_max_length"
        )


def _without_items(schema: object, path: tuple[str, ...]) -> Iterator[str]:
    """Say where a schema has an array of unknown items.

    In a list of types: https://github.com/Automattic/wordpress-mcp/issues/103 ; below `additionalProperties`:
    https://github.com/NousResearch/hermes-agent/pull/22298 .
    """
    if isinstance(schema, list):
        for number, one in enumerate(schema):
            yield from _without_items(one, (*path, str(number)))
    if not isinstance(schema, dict):
        return
    kind = schema.get("type")
    if kind == "array" and "items" not in schema:
        yield f"In context={path}, array schema missing items."
    if "array" in listed(kind) and "items" not in schema:
        yield f"In context={(*path, 'type', str(listed(kind).index('array')))}, array schema missing items."
    for name, one in mapped(schema.get("properties")).items():
        yield from _without_items(one, (*path, "properties", name))
    for key in ("items", "anyOf", "additionalProperties"):
        yield from _without_items(schema.get(key), (*path, key))


def _not_strict(schema: object, path: tuple[str, ...]) -> Iterator[str]:
    """Say where a schema breaks the rules for `strict: true`.

    Rules: https://developers.openai.com/api/docs/guides/function-calling#strict-mode ; words:
    https://github.com/lastmile-ai/openai-agents-mcp/issues/2 , https://github.com/dust-tt/dust/pull/27635 and
    https://github.com/makenotion/notion-mcp-server/issues/102 .
    """
    if not isinstance(schema, dict):
        return
    for key in ("allOf", "oneOf"):
        if key in schema:
            yield f"In context={path}, '{key}' is not permitted."
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        yield f"In context={path}, 'additionalProperties' is required to be supplied and to be false."
    properties = mapped(schema.get("properties"))
    for name in properties:
        if name not in listed(schema.get("required")):
            needed = "'required' is required to be supplied and to be an array including every key in properties."
            yield f"In context={path}, {needed} Missing '{name}'."
    for name, one in properties.items():
        yield from _not_strict(one, (*path, "properties", name))
    yield from _not_strict(schema.get("items"), (*path, "items"))
    for number, one in enumerate(listed(schema.get("anyOf"))):
        yield from _not_strict(one, (*path, "anyOf", str(number)))


def image(place: str, url: object, *, quoted: str) -> Iterator[Refusal]:
    """Refuse an image whose URL holds no base64, or bytes of no known format.

    https://github.com/Alibaba-NLP/OmniSearch/issues/3 , https://github.com/anomalyco/opencode/issues/23983 and, for a
    file, https://github.com/vercel/ai/issues/7266 ; of no format: https://github.com/STranslate/STranslate/issues/277 .
    `quoted` is how the API begins the sentence.
    """
    if not isinstance(url, str) or url.startswith(("http://", "https://")):
        return
    head, comma, data = url.partition(",")
    if not head.startswith("data:"):
        wrong = "a value without the 'data:' prefix"
    elif not data.strip() or not comma:
        wrong = "empty base64-encoded bytes"
    elif not is_base64(data):
        wrong = "an invalid base64-encoded value"
    else:
        if format_of(data) is None:
            yield bad(_UNSUPPORTED, place, "invalid_image_format")
        return
    yield bad(f"{quoted} '{place}'. Expected {_EXAMPLE}, but got {wrong}.", place, "invalid_value")
