"""The tool with which a model writes to its user is found by its name and its parameters."""

from typing import Any

import pytest

from wedgehog.fake_llm.conversation import ToolSpec
from wedgehog.fake_llm.script.message_tool import find_message_tool

TEXT = {"type": "string"}
ACTION = {"type": "string", "enum": ["list", "send", "edit"]}


def tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> ToolSpec:
    return ToolSpec(name, schema={"type": "object", "properties": properties, "required": list(required)})


@pytest.mark.parametrize(
    ("offered", "arguments"),
    [
        (tool("message", ("content",), content=TEXT, chat_id=TEXT), {"content": "Hi"}),
        (tool("message", ("action",), action=ACTION, message=TEXT, target=TEXT), {"action": "send", "message": "Hi"}),
        (tool("send_message", ("message",), message=TEXT, action=ACTION), {"action": "send", "message": "Hi"}),
        (tool("send_message_to_user", ("text", "silent"), text=TEXT, silent={"type": "boolean"}), None),
        (tool("mcp__chat__send_reply", text=TEXT), {"text": "Hi"}),
        (tool("notify_user", text=TEXT), {"text": "Hi"}),
        (tool("reply", body=TEXT), {"body": "Hi"}),
    ],
    ids=lambda it: it.name if isinstance(it, ToolSpec) else "",
)
def test_it_is_called_with_the_text(offered: ToolSpec, arguments: dict[str, Any] | None):
    """And told to send where it can do more; other required parameters get some value."""
    found = find_message_tool([tool("shell", command=TEXT), offered])
    assert found is not None and found.name == offered.name
    given = found.arguments("Hi")
    assert given == arguments if arguments else {"text", "silent"} == {*given}


@pytest.mark.parametrize(
    "offered",
    [
        tool("SendMessage", ("to", "message"), to=TEXT, message=TEXT),
        tool("send_message", ("agent_id", "message"), agent_id=TEXT, message=TEXT),
        tool("list_messages", text=TEXT),
        tool("message_count", text=TEXT),
        tool("send_message", number={"type": "integer"}),
        tool("commit_message", message=TEXT),
        tool("send_input", message=TEXT),
        ToolSpec("message"),
    ],
    ids=lambda it: it.name,
)
def test_a_tool_for_something_else_is_not_taken_for_it(offered: ToolSpec):
    """It writes to another agent, or writes nothing."""
    assert find_message_tool([offered]) is None
