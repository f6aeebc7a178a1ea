"""Schemas of tools, and images, that Gemini refuses, in its words.

A schema is not JSON Schema, but a message of Protocol Buffers. Its fields: https://ai.google.dev/api/caching#Schema .
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Refusal, bad

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
    """Refuse a schema with fields that the API does not have, all in one message.

    https://github.com/openswarm-ai/openswarm/issues/24 , and for a list of types
    https://github.com/zed-industries/zed/issues/53919 .
    """
    wrong = [f"Invalid JSON payload received. Unknown name {said}" for said in _unknown(place, given)]
    if wrong:
        yield bad("\n".join(wrong))


def _unknown(place: str, given: object) -> Iterator[str]:
    if not isinstance(given, dict):
        return
    for name in given:
        if name not in _FIELDS:
            yield f"\"{name}\" at '{place}': Cannot find field."
    if isinstance(given.get("type"), list):
        yield f"\"type\" at '{place}': Proto field is not repeating, cannot start list."
    properties: Any = given.get("properties")
    for number, one in enumerate(properties.values() if isinstance(properties, dict) else ()):
        yield from _unknown(f"{place}.properties[{number}].value", one)
    yield from _unknown(f"{place}.items", given.get("items"))
    choices = given.get("anyOf", given.get("any_of"))
    for number, one in enumerate(choices if isinstance(choices, list) else ()):
        yield from _unknown(f"{place}.any_of[{number}]", one)


def image(place: str, kind: object, data: object) -> Iterator[Refusal]:
    """Refuse an image that is no base64, or has an unknown type.

    https://github.com/bobrware/bobrchat/issues/135 and https://github.com/ogkalu2/comic-translate/pull/399 .
    """
    if isinstance(data, str) and not _BASE64.fullmatch(data):
        yield bad(f"Invalid value at '{place}.inline_data.data' (TYPE_BYTES), Base64 decoding failed for \"{data}\"")
    if isinstance(kind, str) and kind.startswith("image/") and kind not in _FORMATS:
        yield bad(f"Unsupported MIME type: {kind}")
