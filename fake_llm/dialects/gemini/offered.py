"""Schemas of tools, and images, that Gemini refuses, in its words.

A schema is not JSON Schema, but a message of Protocol Buffers. Its fields: https://ai.google.dev/api/caching#Schema .
"""

import json
import re
from collections.abc import Iterator
from typing import Final

from wedgehog.fake_llm.dialects.base import Refusal, bad
from wedgehog.fake_llm.dialects.images import KNOWN_FORMATS, format_of
from wedgehog.fake_llm.request import listed, mapped

_FIELDS: Final = frozenset(
    (
        *(
            "type",
            "format",
            "title",
            "description",
            "nullable",
            "enum",
            "maxItems",
            "minItems",
            "properties",
            "required",
        ),
        *(
            "minProperties",
            "maxProperties",
            "minLength",
            "maxLength",
            "pattern",
            "example",
            "anyOf",
            "propertyOrdering",
        ),
        *("default", "items", "minimum", "maximum", "max_items", "min_items", "min_properties", "max_properties"),
        *("min_length", "max_length", "any_of", "property_ordering"),
    )
)
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")
_FORMATS: Final = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "image/gif")


def schema(place: str, given: object) -> Iterator[Refusal]:
    """Refuse a schema, with all its mistakes in one message.

    Fields that the API does not have: https://github.com/openswarm-ai/openswarm/issues/24 ; a list of types:
    https://github.com/zed-industries/zed/issues/53919 ; numbers in an `enum`:
    https://github.com/microsoft/azure-devops-mcp/issues/145 . An array without `items`:
    https://github.com/cline/cline/issues/7339 ; a required property that is not there:
    https://github.com/iBUHub/AIStudioToAPI/issues/154 .
    """
    wrong = [*_unknown(place, given)]
    if wrong:
        yield bad("\n".join(wrong))
    missing = [*_missing(place, given)]
    if missing:
        yield bad("".join(f"* GenerateContentRequest.{said}\n" for said in missing))


def _unknown(place: str, given: object) -> Iterator[str]:
    """Say what can't be read as the API's message."""
    if not isinstance(given, dict):
        return
    unknown = "Invalid JSON payload received. Unknown name"
    for name in given:
        if name not in _FIELDS:
            yield f"{unknown} \"{name}\" at '{place}': Cannot find field."
    if isinstance(given.get("type"), list):
        yield f"{unknown} \"type\" at '{place}': Proto field is not repeating, cannot start list."
    for number, value in enumerate(listed(given.get("enum"))):
        if not isinstance(value, str):
            yield f"Invalid value at '{place}.enum[{number}]' (TYPE_STRING), {json.dumps(value)}"
    for number, one in enumerate(mapped(given.get("properties")).values()):
        yield from _unknown(f"{place}.properties[{number}].value", one)
    yield from _unknown(f"{place}.items", given.get("items"))
    for number, one in enumerate(listed(given.get("anyOf", given.get("any_of")))):
        yield from _unknown(f"{place}.any_of[{number}]", one)


def _missing(place: str, given: object) -> Iterator[str]:
    """Say what a readable schema lacks."""
    if not isinstance(given, dict):
        return
    if str(given.get("type")).lower() == "array" and "items" not in given:
        yield f"{place}.items: missing field."
    properties = mapped(given.get("properties"))
    for number, name in enumerate(listed(given.get("required"))):
        if "type" in given and name not in properties:
            yield f"{place}.required[{number}]: property is not defined"
    for name, one in properties.items():
        yield from _missing(f"{place}.properties[{name}]", one)
    yield from _missing(f"{place}.items", given.get("items"))
    for number, one in enumerate(listed(given.get("anyOf", given.get("any_of")))):
        yield from _missing(f"{place}.any_of[{number}]", one)


def image(place: str, kind: object, data: object) -> Iterator[Refusal]:
    """Refuse an image that is no base64, has an unknown type, or bytes of no known format.

    https://github.com/bobrware/bobrchat/issues/135 , https://github.com/ogkalu2/comic-translate/pull/399 and
    https://github.com/google-gemini/gemini-cli/issues/5882 .
    """
    if isinstance(data, str) and not _BASE64.fullmatch(data):
        yield bad(f"Invalid value at '{place}.inline_data.data' (TYPE_BYTES), Base64 decoding failed for \"{data}\"")
    if isinstance(kind, str) and kind.startswith("image/") and kind not in _FORMATS:
        yield bad(f"Unsupported MIME type: {kind}")
    elif kind in KNOWN_FORMATS and isinstance(data, str) and format_of(data) is None:
        yield bad("Provided image is not valid.")
