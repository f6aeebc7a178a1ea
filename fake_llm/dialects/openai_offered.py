"""Tools and images of a request that OpenAI refuses, in its words; each source is a public report."""

import re
from collections.abc import Iterator
from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Refusal
from wedgehog.fake_llm.dialects.images import is_base64
from wedgehog.fake_llm.dialects.openai_common import bad
from wedgehog.fake_llm.request import listed, mapped

_NAME: Final = re.compile(r"^[a-zA-Z0-9_-]+$")
_LONGEST_NAME: Final = 64
_MOST_TOOLS: Final = 128
_EXAMPLE: Final = (
    "a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=')"
)


def too_many(tools: object) -> Iterator[Refusal]:
    """Refuse more than 128 tools: https://github.com/0x4m4/hexstrike-ai/issues/29 ."""
    count = len(listed(tools))
    if count > _MOST_TOOLS:
        text = f"Expected an array with maximum length {_MOST_TOOLS}, but got an array with length {count} instead."
        yield bad(f"Invalid 'tools': array too long. {text}", "tools", "array_above_max_length")


def function(place: str, offered: dict[str, Any]) -> Iterator[Refusal]:
    """Refuse a function's name or schema.

    Names: https://github.com/brekkylab/ailoy/pull/109 and https://github.com/mrexodia/ida-pro-mcp/issues/129 ; schemas:
    https://github.com/modelscope/ms-agent/pull/610 and https://github.com/FoundationAgents/OpenManus/issues/1162 .
    """
    name, schema = offered.get("name"), offered.get("parameters")
    if isinstance(name, str):
        yield from _name(f"{place}.name", name)
    if schema is None:
        return
    wrong = "" if isinstance(schema, dict) else f"{schema!r} is not of type 'object', 'boolean'."
    wrong = wrong or next(_without_items(schema, ()), "")
    if wrong:
        param = f"{place}.parameters"
        yield bad(f"Invalid schema for function '{name}': {wrong}", param, "invalid_function_parameters")


def _name(place: str, name: str) -> Iterator[Refusal]:
    if not _NAME.match(name):
        text = f"string does not match pattern. Expected a string that matches the pattern '{_NAME.pattern}'."
        yield bad(f"Invalid '{place}': {text}", place, "invalid_value")
    if len(name) > _LONGEST_NAME:
        lengths = f"maximum length {_LONGEST_NAME}, but got a string with length {len(name)} instead."
        yield bad(
            f"Invalid '{place}': string too long. Expected a string with {lengths}", place, "string_above_max_length"
        )


def _without_items(schema: object, path: tuple[str, ...]) -> Iterator[str]:
    """Say where a schema has an array of unknown items."""
    if isinstance(schema, list):
        for number, one in enumerate(schema):
            yield from _without_items(one, (*path, str(number)))
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "array" and "items" not in schema:
        yield f"In context={path}, array schema missing items."
    for name, one in mapped(schema.get("properties")).items():
        yield from _without_items(one, (*path, "properties", name))
    for key in ("items", "anyOf"):
        yield from _without_items(schema.get(key), (*path, key))


def image(place: str, url: object, *, quoted: str) -> Iterator[Refusal]:
    """Refuse an image whose URL holds no base64.

    https://github.com/Alibaba-NLP/OmniSearch/issues/3 , https://github.com/anomalyco/opencode/issues/23983 and, for a
    file, https://github.com/vercel/ai/issues/7266 ; `quoted` is how the API begins the sentence.
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
        return
    yield bad(f"{quoted} '{place}'. Expected {_EXAMPLE}, but got {wrong}.", place, "invalid_value")
