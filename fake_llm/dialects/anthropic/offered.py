"""Tools and images of a request that Anthropic refuses, in its words; each source is a public report."""

import re
from collections.abc import Iterator
from typing import Any, Final

from wedgehog.fake_llm.dialects import schema_mistakes
from wedgehog.fake_llm.dialects.base import Refusal, bad
from wedgehog.fake_llm.dialects.images import format_of, is_base64, is_pdf, pixels_of
from wedgehog.fake_llm.request import listed, mapped

_NAME: Final = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
_PROPERTY: Final = re.compile(r"^[a-zA-Z0-9_.-]{1,64}$")
_LONGEST_NAME: Final = 128
_UNIONS: Final = ("oneOf", "allOf", "anyOf")
_FORMATS: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
_LARGEST_IMAGE: Final = 5 * 2**20
_MOST_PIXELS: Final = 8000


def refusals(document: dict[str, Any]) -> Iterator[Refusal]:
    """Yield what is wrong with the tools and images of a request."""
    yield from _tools([mapped(tool) for tool in listed(document.get("tools"))])
    for place, block in enumerate(map(mapped, listed(document.get("system")))):
        if _marks_nothing(block):
            yield bad(f"system.{place}: cache_control cannot be set for empty text blocks")
    for index, message in enumerate(map(mapped, listed(document.get("messages")))):
        yield from _content(f"messages.{index}.content", message.get("content"))


def _marks_nothing(block: dict[str, Any]) -> bool:
    """Return True for a cached empty text: https://github.com/anthropics/claude-code/issues/50082 ."""
    return block.get("type") == "text" and not block.get("text") and bool(block.get("cache_control"))


def _tools(tools: list[dict[str, Any]]) -> Iterator[Refusal]:
    """Refuse names and schemas.

    Names: https://github.com/home-assistant/core/issues/147760 ; long ones:
    https://github.com/anthropics/claude-code/issues/96152 ;
    equal ones: https://github.com/anthropics/claude-code/issues/10687 .
    """
    for index, tool in enumerate(tools):
        name = tool.get("name")
        if tool.get("type") not in (None, "custom") or not isinstance(name, str):
            continue  # the provider's own tools have names and fields of their own
        if len(name) > _LONGEST_NAME:
            yield bad(f"tools.{index}.custom.name: String should have at most {_LONGEST_NAME} characters")
        if not _NAME.match(name):
            yield bad(f"tools.{index}.custom.name: String should match pattern '{_NAME.pattern}'")
        yield from _schema(f"tools.{index}.custom.input_schema", tool.get("input_schema"))
    names = [tool.get("name") for tool in tools]
    if len(set(map(str, names))) < len(names):
        yield bad("tools: Tool names must be unique.")


def _schema(place: str, schema: object) -> Iterator[Refusal]:
    """Refuse a schema.

    No type: https://github.com/block/buzz/pull/3192 ; a union on top:
    https://github.com/anthropics/claude-code/issues/40075 ; names of properties, on top only:
    https://github.com/anthropics/claude-code/issues/79418 ; no JSON Schema:
    https://github.com/acomagu/vscode-as-mcp-server/issues/6 .
    """
    if schema is None:
        yield bad(f"{place}: Field required")
    if not isinstance(schema, dict):
        yield bad(f"{place}: Input should be a valid dictionary")
        return
    if "type" not in schema:
        yield bad(f"{place}.type: Field required")
    if schema.get("type") != "object":
        yield bad(f"{place}.type: Input should be 'object'")
    if any(union in schema for union in _UNIONS):
        yield bad(f"{place}: input_schema does not support oneOf, allOf, or anyOf at the top level")
    if not all(_PROPERTY.match(name) for name in mapped(schema.get("properties"))):
        yield bad(f"{place}.properties: Property keys should match pattern '{_PROPERTY.pattern}'")
    if next(schema_mistakes.wrong(schema), None):
        yield bad(
            f"{place}: JSON schema is invalid. It must match JSON Schema draft 2020-12 "
            "(https://json-schema.org/draft/2020-12). Learn more about tool use at "
            "https://docs.claude.com/en/docs/tool-use."
        )


def _content(place: str, content: object) -> Iterator[Refusal]:
    for number, block in enumerate(map(mapped, listed(content))):
        if _marks_nothing(block):
            yield bad(f"{place}.{number}.text: cache_control cannot be set for empty text blocks")
        if block.get("type") == "image":
            yield from _image(f"{place}.{number}.image.source.base64", mapped(block.get("source")))
        elif block.get("type") == "document":
            yield from _pdf(f"{place}.{number}.pdf.source.base64", mapped(block.get("source")))
        elif block.get("type") == "tool_result":
            yield from _content(f"{place}.{number}.tool_result.content", block.get("content"))


def _pdf(place: str, source: dict[str, Any]) -> Iterator[Refusal]:
    """Refuse a document that is no PDF: https://github.com/anthropics/claude-code/issues/25323 ."""
    data = source.get("data")
    if source.get("type") == "base64" and isinstance(data, str) and is_base64(data) and not is_pdf(data):
        yield bad(f"{place}.data: The PDF specified was not valid.")


def _image(place: str, source: dict[str, Any]) -> Iterator[Refusal]:
    """Refuse an image.

    Its type: https://github.com/anthropics/claude-code/issues/8184 ; empty:
    https://github.com/anthropics/claude-code/issues/12750 ; no base64:
    https://github.com/anthropics/anthropic-sdk-typescript/issues/603 ; too large:
    https://github.com/anthropics/claude-code/issues/19631 ; another format than its type says:
    https://github.com/anthropics/claude-code/issues/13131 ; of no format, as a page of HTML with the name of a picture:
    https://github.com/anthropics/claude-code/issues/53228 ; too wide or too high:
    https://github.com/NousResearch/hermes-agent/issues/37677 .
    """
    data, kind = source.get("data"), source.get("media_type")
    if source.get("type") != "base64" or not isinstance(data, str):
        return
    if kind is not None and kind not in _FORMATS:
        *first, last = (f"'{known}'" for known in _FORMATS)
        yield bad(f"{place}.media_type: Input should be {', '.join(first)} or {last}")
    if not data:
        yield bad(f"{place}: image cannot be empty")
    if not is_base64(data):
        yield bad(f"{place}: invalid base64 data")
        return
    if len(data) > _LARGEST_IMAGE:
        yield bad(f"{place}: image exceeds 5 MB maximum: {len(data)} bytes > {_LARGEST_IMAGE} bytes")
    if kind is not None and format_of(data) not in (None, kind):
        yield bad(f"{place}.data: Image does not match the provided media type {kind}")
    if format_of(data) is None:
        yield bad("Could not process image")
    if max(pixels_of(data) or (0, 0)) > _MOST_PIXELS:
        limit = f"{_MOST_PIXELS} pixels"
        yield bad(f"{place}.data: At least one of the image dimensions exceed max allowed size: {limit}")
