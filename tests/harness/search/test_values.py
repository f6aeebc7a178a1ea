"""Values drawn for a JSON Schema fit it."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wedgehog.harness.search.draw import HypothesisChoices, SeededChoices
from wedgehog.harness.search.values import value_for

NODE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "next": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}},
            "required": ["name", "next"],
        }
    },
}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "string", "minLength": 3, "maxLength": 9},
    {"type": "string", "minLength": 300},
    {"type": "integer", "minimum": 400, "maximum": 599},
    {"type": "integer", "exclusiveMinimum": 0},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    {"type": "number"},
    {"type": ["string", "null"]},
    {"enum": ["celsius", "kelvin"]},
    {"const": 7},
    {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
    {"allOf": [{"type": "integer"}, {"minimum": 5, "maximum": 6}]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
    {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "boolean"}}, "required": ["b"]},
    {"type": "object", "required": ["undescribed"]},
    {},
    NODE,
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@settings(max_examples=50)
@given(data=st.data())
def test_a_drawn_value_fits_its_schema(schema: dict[str, Any], data: st.DataObject):
    """In a Hypothesis test."""
    jsonschema.validate(value_for(HypothesisChoices(data.draw), schema), schema)


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_so_does_one_that_follows_from_a_seed(schema: dict[str, Any]):
    """Equal seeds draw equal values, other seeds reach other ones."""
    drawn = [value_for(SeededChoices(str(seed)), schema) for seed in range(60)]
    for value in drawn:
        jsonschema.validate(value, schema)
    assert drawn == [value_for(SeededChoices(str(seed)), schema) for seed in range(60)]
    assert len({repr(value) for value in drawn}) > 1 or "const" in schema


def test_an_unknown_reference_fits_anything():
    """A broken schema of an agent's tool does not end the search."""
    assert isinstance(value_for(SeededChoices("0"), {"$ref": "#/$defs/none"}), str)
