"""Parameters of faults and invariants: pydantic checks each value, and its JSON Schema says what the value must be.

A parameter's type is its annotation: `float`, `int`, `bool`, `str`, `Literal`, `None`, unions of them, and
`Annotated[int, Field(ge=400, le=599)]`. Durations are annotated `Seconds` or `Positive`.
"""

import math
from collections.abc import Mapping
from dataclasses import MISSING
from typing import Annotated, Any, Literal, cast

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from wedgehog.harness.record.expectation import did_you_mean, mismatch

Schema = dict[str, Any]

Seconds = Annotated[float, Field(ge=0, description="seconds")]
Positive = Annotated[float, Field(gt=0, description="seconds")]
Forever = Literal["forever"]

_NOUNS = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "string": "text"}
_BOUNDS = {
    "minimum": "of at least",
    "exclusiveMinimum": "above",
    "maximum": "of at most",
    "exclusiveMaximum": "below",
}


class FaultError(ValueError):
    """A mistake in a fault that a user wrote, in one sentence that says what is expected."""


class ValueType:
    """What the values of a parameter must be. To make one takes a millisecond: parameters of one type share it."""

    def __init__(self, hint: Any) -> None:
        self._adapter = TypeAdapter[Any](hint, config=ConfigDict(strict=True, allow_inf_nan=False))
        self.schema: Schema = self._adapter.json_schema()
        self.seconds = any(option.get("description") == "seconds" for option in _options(self.schema))

    def fit(self, value: object) -> Any:
        """`value` as this type. Raises ValueError: what is expected, and what is found."""
        try:
            return self._adapter.validate_python(value)
        except ValidationError:
            raise ValueError(mismatch([takes(self.schema)], value, choices(self.schema))) from None


class Parameter:
    """One parameter: its JSON Schema, its default (MISSING where it has none), and whether a time scale divides it."""

    def __init__(self, values: ValueType, default: object = MISSING, *, real_time: bool = False) -> None:
        """`real_time`: its seconds are the same in every run; no time scale divides them."""
        self._values = values
        self.schema, self.seconds = values.schema, values.seconds
        self.default = default
        self.scaled = self.seconds and not real_time

    @property
    def is_needed(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    def fit(self, value: object) -> Any:
        """`value` as its type; its own default always fits. Raises ValueError: what is expected, and what is found."""
        if value is None and self.default is None:
            return None
        return self._values.fit(value)


def accept(
    owner: str, known: Mapping[str, Parameter], given: Mapping[str, object], error: type[ValueError]
) -> dict[str, Any]:
    """The given parameters as their types; `error` with one sentence for an unknown, missing or wrong one."""
    for name in given:
        if name not in known:
            rest = f"it takes {', '.join(known)}" if known else "it takes no parameters"
            raise error(f"{owner} has no parameter {name!r}{did_you_mean(name, known)}; {rest}")
    for name, parameter in known.items():
        if parameter.is_needed and name not in given:
            raise error(f"{owner} needs {name}: write `{owner}: {{{name}: …}}`")
    fitting = {}
    for name, value in given.items():
        try:
            fitting[name] = known[name].fit(value)
        except ValueError as wrong:
            raise error(f"{owner}: {name}: {wrong}") from None
    return fitting


def _options(schema: Schema) -> list[Schema]:
    return cast(list[Schema], schema.get("anyOf", [schema]))


def choices(schema: Schema) -> list[Any]:
    """The words that fit a schema."""
    return [word for it in _options(schema) for word in it.get("enum", [it["const"]] if "const" in it else [])]


def takes(schema: Schema) -> str:
    """What fits a schema, in words.

    >>> takes({"anyOf": [{"const": "forever"}, {"type": "number", "minimum": 0, "description": "seconds"}]})
    '`forever` or seconds of at least 0'
    """
    if "anyOf" in schema:
        return " or ".join(takes(option) for option in schema["anyOf"] if option.get("type") != "null")
    if words := choices(schema):
        return " or ".join(f"`{word}`" for word in words)
    noun = schema.get("description", _NOUNS.get(schema.get("type", ""), "a value of its type"))
    if "minimum" in schema and "maximum" in schema:
        return f"{noun} from {schema['minimum']:,} to {schema['maximum']:,}"
    return " ".join([noun, *(f"{word} {schema[key]:,}" for key, word in _BOUNDS.items() if key in schema)])


def shorter_whole_s(s: float, factor: float) -> float:
    """A time that HTTP tells in whole seconds, divided by a run's time scale and rounded up."""
    return s if factor == 1 else math.ceil(s / factor)
