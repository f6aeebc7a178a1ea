"""Draws JSON values that fit a JSON Schema: arguments of an agent's tools, parameters of a fault."""

from collections.abc import Mapping, Sequence
from typing import Any

from wedgehog.fake_llm.script.schema_values import JsonSchema, resolved
from wedgehog.harness.search.draw import Choices

WORDS = ("note", "hedgehog", "two words", "notes.txt", "", "Grüße 🦔", "x" * 200)
"""Harmless texts: an agent's tool may use them as a file name or a command."""
WIDE = 8
"""How far above its least value a number without an upper bound goes."""
DEEPEST = 4
"""Below this depth only required properties and the shortest lists are drawn."""


def value_for(draw: Choices, schema: JsonSchema, root: JsonSchema | None = None, depth: int = 0) -> Any:
    """A value that fits `schema`; local `$ref`s are looked up in `root`."""
    root = schema if root is None else root
    schema = resolved(schema, root)
    if "const" in schema:
        return schema["const"]
    if usual := schema.get("enum") or schema.get("examples"):
        return draw.choose(usual)
    if unions := next((schema[key] for key in ("anyOf", "oneOf") if schema.get(key)), None):
        return value_for(draw, draw.choose(unions if depth < DEEPEST else unions[:1]), root, depth + 1)
    return _of_kind(draw, _kind(draw, schema), schema, root, depth)


def _kind(draw: Choices, schema: JsonSchema) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return str(draw.choose(kind)) if isinstance(kind, list) else str(kind)


def _of_kind(draw: Choices, kind: str, schema: JsonSchema, root: JsonSchema, depth: int) -> Any:
    if kind == "object":
        return _mapping(draw, schema, root, depth)
    if kind == "array":
        least = int(schema.get("minItems", 0))
        most = least if depth >= DEEPEST else min(int(schema.get("maxItems", least + 2)), least + 2)
        return [value_for(draw, schema.get("items", {}), root, depth + 1) for _ in range(draw.between(least, most))]
    if kind in ("integer", "number"):
        return _number(draw, kind, schema)
    if kind == "boolean":
        return draw.choose((False, True))
    return None if kind == "null" else _text(draw, schema)


def _mapping(draw: Choices, schema: JsonSchema, root: JsonSchema, depth: int) -> dict[str, Any]:
    required: Sequence[str] = schema.get("required", ())
    properties: Mapping[str, JsonSchema] = schema.get("properties", {})
    optional = [name for name in properties if name not in required]
    chosen = [name for name in optional if depth < DEEPEST and draw.choose((False, True))]
    return {name: value_for(draw, properties.get(name, {}), root, depth + 1) for name in (*required, *chosen)}


def _number(draw: Choices, kind: str, schema: JsonSchema) -> int | float:
    whole = kind == "integer"
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    least = schema.get("minimum", 0 if above is None else above + (1 if whole else 0.25))
    most = schema.get("maximum", least + WIDE if below is None else below - (1 if whole else 0.25))
    most = max(least, min(most, least + 64 * WIDE))
    if whole:
        return draw.between(int(least), int(most))
    return min(float(most), float(least) + draw.between(0, int((most - least) * 4)) / 4)


def _text(draw: Choices, schema: JsonSchema) -> str:
    least, most = int(schema.get("minLength", 0)), int(schema.get("maxLength", 200))
    word = draw.choose([word for word in WORDS if len(word) <= most] or [""])
    return word if len(word) >= least else (word + "word " * least)[: max(least, min(most, least + 5))]
