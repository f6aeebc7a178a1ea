"""Where a tool's schema is no JSON Schema (draft 2020-12), in the words of the `jsonschema` package, as OpenAI says it.

Only keywords whose value has a wrong type are found. What a provider demands beside that is in its own module.

The package itself would take 4 ms for a tool of six arguments, and this takes 0.02 ms: an agent sends all of its tools
with each request. A test compares both.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

_TYPES: Final = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
_ONE: Final = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_MANY: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED: Final = ("properties", "$defs", "definitions", "patternProperties")


def wrong(schema: object) -> Iterator[str]:
    """Yield what is wrong in a schema.

    >>> next(wrong({"type": "object", "properties": {"a": {"type": "string", "required": True}}}))
    "True is not of type 'array'"
    """
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield _not_of(schema, "object", "boolean")
        return
    for keyword, value in schema.items():
        check = _CHECKS.get(keyword)
        if check is not None:
            yield from check(value)


def _schemas(value: object) -> Iterator[str]:
    if not isinstance(value, list):
        yield _not_of(value, "array")
        return
    if not value:
        yield "[] should be non-empty"
    for one in value:
        yield from wrong(one)


def _named(value: object) -> Iterator[str]:
    if not isinstance(value, dict):
        yield _not_of(value, "object")
        return
    for one in value.values():
        yield from wrong(one)


def _type(value: object) -> Iterator[str]:
    names = value if isinstance(value, list) and value else [value]
    if not all(isinstance(name, str) and name in _TYPES for name in names):
        yield f"{value!r} is not valid under any of the given schemas"


def _required(value: object) -> Iterator[str]:
    if not isinstance(value, list):
        yield _not_of(value, "array")
        return
    for name in value:
        if not isinstance(name, str):
            yield _not_of(name, "string")


def _list(value: object) -> Iterator[str]:
    if not isinstance(value, list):
        yield _not_of(value, "array")


def _number(value: object) -> Iterator[str]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        yield _not_of(value, "number")


def _not_of(value: object, *types: str) -> str:
    return f"{value!r} is not of type {', '.join(map(repr, types))}"


_CHECKS: Final[dict[str, Callable[[Any], Iterator[str]]]] = {
    "type": _type,
    "required": _required,
    "enum": _list,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
    **dict.fromkeys(_ONE, wrong),
    **dict.fromkeys(_MANY, _schemas),
    **dict.fromkeys(_NAMED, _named),
}
