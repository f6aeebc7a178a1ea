"""Events: tagged plain data that JSON keeps unchanged."""

import json
from dataclasses import fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from wedgehog.harness.record.events.base import KINDS, from_json
from wedgehog.harness.record.events.call import RequestArrived, ToolResult
from wedgehog.harness.record.events.run import Note


def sample(hint: Any) -> Any:
    """A value of a field's type."""
    options = get_args(hint)
    if get_origin(hint) is tuple:
        return (sample(options[0]),)
    if get_origin(hint) is Literal:
        return options[0]
    if options:  # a union
        return sample(options[0])
    plain = {str: "ä 漢 \n", int: 3, float: 1.5, bool: True, type(None): None}
    if hint in plain:
        return plain[hint]
    return hint(**{item.name: sample(get_type_hints(hint)[item.name]) for item in fields(hint)})


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_event_is_equal_after_json(kind: str):
    """Nested values and tuples too."""
    cls = KINDS[kind]
    hints = get_type_hints(cls)
    event = cls(**{item.name: sample(hints[item.name]) for item in fields(cls)})
    data = json.loads(json.dumps(event.as_json(), ensure_ascii=False))
    assert data["event"] == kind
    assert from_json(data) == event


def test_the_tag_is_the_class_name_in_snake_case():
    """The tag and the field names of history.jsonl."""
    assert RequestArrived.kind == "request_arrived"
    assert tuple(item.name for item in fields(Note)) == ("id", "at_s", "what")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"event": "no_such", "id": 1}, "unknown event 'no_such'"),
        ({"id": 1}, "unknown event ''"),
        ({"event": "note"}, "event note: the key 'what' is missing"),
        ({"event": "note", "what": ["x"]}, "event note: what: expected text, found a list"),
        ({"event": "turn_ended", "turn": 1, "ended": "somehow"}, "event turn_ended: ended"),
    ],
)
def test_data_that_is_no_event_is_refused_with_the_wrong_field(data: dict[str, Any], says: str):
    """The error is one sentence that names the field."""
    with pytest.raises(ValueError, match=says):
        from_json(data)


def test_from_json_does_not_change_its_data():
    """The argument is equal before and after."""
    data = {"event": "note", "what": "x"}
    assert from_json(data) == Note(what="x")
    assert data == {"event": "note", "what": "x"}
    assert ToolResult("a", 1).token == ""
