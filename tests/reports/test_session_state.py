"""What the page reads in an agent's session file, whatever the agent writes there."""

import json
from pathlib import Path
from typing import Any

import pytest

from wedgehog.reports.page.answers.session_state import session_state

SCHEMA = {"parameters": {"properties": {"type": {"type": "string"}, "id": {"type": "string"}}}}


@pytest.mark.parametrize("name", ["session.json", "session.jsonl"])
@pytest.mark.parametrize("held", [{"type": SCHEMA, "id": "1"}, [SCHEMA["parameters"]["properties"]], ["a", 1]])
def test_a_session_file_may_hold_any_json(tmp_path: Path, name: str, held: Any):
    """A schema with a property `type`, or a list in the place of an object: the page must not end in an error."""
    path = tmp_path / name
    path.write_text(json.dumps(held))
    found = session_state(path)
    assert found is not None
    assert (found.calls, found.sums) == ((), {})


def test_a_tool_call_without_a_result_is_counted(tmp_path: Path):
    """Known by its type."""
    path = tmp_path / "session.jsonl"
    calls = [{"type": "tool_use", "id": it} for it in ("call_1", "call_2")]
    path.write_text("\n".join(map(json.dumps, [*calls, {"type": "tool_result", "tool_use_id": "call_1"}])))
    found = session_state(path)
    assert found is not None
    assert (found.calls, found.dangling) == (("call_1", "call_2"), ("call_2",))
