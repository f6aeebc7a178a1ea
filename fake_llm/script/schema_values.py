"""Small values that satisfy a JSON Schema, the same each time."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from wedgehog.fake_llm.script.pattern_text import matching

JsonSchema = Mapping[str, Any]
PHRASE: Final = "a short phrase"
_DEEPEST: Final = 4
"""Below this depth a union's shortest branch is taken."""
_ENDLESS: Final = 20
"""A schema that is as deep without a union requires itself."""
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "properties": Mapping,
    "required": list,
    **dict.fromkeys(("minLength", "maxLength", "minItems"), int),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), (int, float)),
}
"""What the values of some keys are."""
_KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
}
"""What a value of a type is."""
FORMATS: Final = {
    "date-time": "2025-01-01T12:00:00Z",
    "date": "2025-01-01",
    "time": "12:00:00Z",
    "duration": "P1D",
    "email": "someone@example.com",
    "hostname": "example.com",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uuid": "7b0f9c1e-4f5a-4c7e-9a41-0d6a3f0c2b11",
}
"""A text of each format that is known; another format says nothing of the text."""


def target(root: JsonSchema, reference: str) -> JsonSchema:
    """What `#/$defs/name` names; an unknown one fits anything."""
    found: Any = root
    for step in filter(None, reference.removeprefix("#").split("/")):
        word = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            found = found[int(word)] if word.isdecimal() and int(word) < len(found) else {}
        else:
            found = found.get(word, {}) if isinstance(found, Mapping) else {}
    return found if isinstance(found, Mapping) else {}


def resolved(schema: Any, root: JsonSchema) -> JsonSchema:
    """A schema with its `$ref` and its `allOf` merged into it; a schema that is no object fits anything."""
    found = _readable(schema)
    for _ in range(_DEEPEST):
        if "$ref" in found:
            found = {
                **_readable(target(root, str(found["$ref"]))),
                **{key: it for key, it in found.items() if key != "$ref"},
            }
        elif parts := listed(found.get("allOf")):
            found = _merged(found, [resolved(part, root) for part in parts])
    return found


def _readable(schema: Any) -> JsonSchema:
    """A schema without keys whose values have a wrong type, such as `maxLength: null`: they say nothing."""
    found = schema.items() if isinstance(schema, Mapping) else ()
    return {key: value for key, value in found if _fits(value, _TYPES.get(key, object))}


def _fits(value: Any, kind: type | tuple[type, ...]) -> bool:
    return isinstance(value, kind) and (kind is object or not isinstance(value, bool))


def _merged(schema: JsonSchema, parts: Sequence[JsonSchema]) -> JsonSchema:
    whole = [*parts, {key: value for key, value in schema.items() if key != "allOf"}]
    merged = {key: value for part in whole for key, value in part.items()}
    properties = {name: one for part in whole for name, one in part.get("properties", {}).items()}
    required = [name for part in whole for name in part.get("required", ())]
    return merged | ({"properties": properties} if properties else {}) | ({"required": required} if required else {})


def branches(schema: JsonSchema) -> Sequence[Any]:
    """The branches of a union; none if it is no union."""
    return next((found for key in ("anyOf", "oneOf") if (found := listed(schema.get(key)))), ())


def kind_of(schema: JsonSchema) -> str:
    """The type that a value of it gets."""
    usual = "object" if "properties" in schema else "array" if "items" in schema else "string"
    kind = schema.get("type", usual)
    return next((one for one in kind if one != "null"), "null") if isinstance(kind, list) else str(kind)


def listed(value: Any) -> Sequence[Any]:
    """A list, or an empty one."""
    return value if isinstance(value, list) else ()


NONE_CHOSEN: Final[Mapping[str, Any]] = {}
"""No property has a value that is given by name."""


def fill(schema: Any, root: JsonSchema | None = None, depth: int = 0, chosen: Mapping[str, Any] = NONE_CHOSEN) -> Any:
    """A small value that satisfies a JSON Schema: an enum's first value, a phrase, false, 1, required properties.

    A property whose name is in `chosen` has that value, where its schema admits it.
    """
    root = (schema if isinstance(schema, Mapping) else {}) if root is None else root
    schema = resolved(schema, root)
    if depth > _ENDLESS:
        return None
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if enum := listed(schema.get("enum")):
        return enum[0]
    if unions := branches(schema):
        branch = unions[0] if depth < _DEEPEST else min(unions, key=lambda one: ("$ref" in one, len(one)))
        return fill(branch, root, depth + 1, chosen)
    return _of_kind(kind_of(schema), schema, root, depth, chosen)


def given(properties: Mapping[str, Any], root: JsonSchema, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The values of `chosen` that these properties admit, by name."""
    return {
        name: value for name, value in chosen.items() if name in properties and admits(properties[name], root, value)
    }


def admits(schema: Any, root: JsonSchema, value: Any) -> bool:
    """Whether a value is one of a schema's: by its type, its `const`, its `enum` or a branch."""
    schema = resolved(schema, root)
    if "const" in schema:
        return _same(schema["const"], value)
    if enum := listed(schema.get("enum")):
        return any(_same(one, value) for one in enum)
    if unions := branches(schema):
        return any(admits(one, root, value) for one in unions)
    kinds = schema.get("type")
    named = kinds if isinstance(kinds, list) else [kinds]
    return kinds is None or any(_is_a(kind, value) for kind in named)


def _same(one: Any, other: Any) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _is_a(kind: Any, value: Any) -> bool:
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, _KINDS.get(kind, ())) and (kind == "boolean" or not isinstance(value, bool))


def _of_kind(kind: str, schema: JsonSchema, root: JsonSchema, depth: int, chosen: Mapping[str, Any]) -> Any:
    if kind == "object":
        values = given(schema.get("properties", {}), root, chosen)
        must = {name: fill(one, root, depth + 1, chosen) for name, one in needed(schema) if name not in values}
        return in_order({**must, **values}, schema)
    if kind == "array":
        return [fill(one, root, depth + 1, chosen) for one in items(schema)]
    if kind in ("integer", "number"):
        return _number(schema, whole=kind == "integer")
    if kind == "boolean":
        return False
    return None if kind == "null" else _text(schema)


def needed(schema: JsonSchema) -> Iterator[tuple[str, Any]]:
    """The properties that a value has, in the schema's order: the required ones, all if it does not say."""
    properties = schema.get("properties", {})
    required = schema.get("required", properties)
    yield from ((name, one) for name, one in properties.items() if name in required)
    yield from ((name, {}) for name in required if name not in properties)


def in_order(values: Mapping[str, Any], schema: JsonSchema) -> dict[str, Any]:
    """The properties in the schema's order; those that it does not name come last."""
    named = [name for name in schema.get("properties", {}) if name in values]
    return {name: values[name] for name in dict.fromkeys([*named, *values])}


def items(schema: JsonSchema) -> list[Any]:
    """The schemas of the items that an array must have."""
    first, least = list(listed(schema.get("prefixItems"))), int(schema.get("minItems", 0))
    return [*first, *[schema.get("items", {})] * (least - len(first))]


def _number(schema: JsonSchema, *, whole: bool) -> float:
    step = schema.get("multipleOf") or (1 if whole else 0.5)
    least = _bound(schema, "minimum", "exclusiveMinimum", step)
    most = _bound(schema, "maximum", "exclusiveMaximum", -step)
    if not whole and None not in (least, most) and float(least or 0) > float(most or 0):
        return (float(schema["exclusiveMinimum"]) + float(schema["exclusiveMaximum"])) / 2
    number: float = 1 if least is None else max(1, least)
    number = number if most is None else min(number, most)
    if "multipleOf" in schema:
        number = math.ceil(number / step) * step
    return int(number) if whole else number


def _bound(schema: JsonSchema, closed: str, opened: str, step: float) -> float | None:
    found = [schema[closed]] if isinstance(schema.get(closed), int | float) else []
    beyond = schema.get(opened)
    if isinstance(beyond, int | float) and not isinstance(beyond, bool):
        found.append(beyond + step)
    return (max if step > 0 else min)(found) if found else None


def _text(schema: JsonSchema) -> str:
    """A string of the schema's format or pattern, and of its length."""
    usual = FORMATS.get(str(schema.get("format")))
    if usual is not None:
        return usual
    least = int(schema.get("minLength", 0))
    if (pattern := schema.get("pattern")) and (found := matching(str(pattern), least)) is not None:
        return found
    return (PHRASE + " and more" * (1 + least // 9 if least > len(PHRASE) else 0))[: schema.get("maxLength")]
