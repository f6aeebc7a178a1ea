"""The arguments of a tool of the agent's own."""

from typing import Any

import pytest

from wedgehog.harness.agents.own_tool import OwnTool

SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "shop": {"type": "string"}, "part": {"enum": ["all", "head"]}},
    "required": ["id", "part"],
}


@pytest.mark.parametrize(
    ("args", "call"),
    [
        ({"id": 7}, {"id": 7, "part": "all"}),
        ({"id": "{n}", "part": "head"}, {"id": 3, "part": "head"}),
        ({"id": 7, "part": "all", "shop": "s{n}"}, {"id": 7, "part": "all", "shop": "s3"}),
        ({"id": 7, "part": "all", "more": {"ids": ["{n}", 1]}}, {"id": 7, "part": "all", "more": {"ids": ["3", 1]}}),
    ],
)
def test_calls_are_numbered_and_filled_by_the_schema(args: dict[str, Any], call: dict[str, Any]):
    """A number where the schema wants one, else within the text."""
    own = OwnTool.model_validate({"name": "look_up", "args": args})
    assert own.call(3, SCHEMA) == call
    assert own.is_numbered is ("{n}" in str(args))
