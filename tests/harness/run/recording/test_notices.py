"""Which passages of a request speak of the end of a subagent."""

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.harness.run.recording.notices import notices_in, notices_lead_on


def found(*messages: Message) -> tuple[str, ...]:
    return notices_in(Conversation("anthropic", "m", True, messages), lambda call_id, text: "1.1.1")


def returned(name: str, text: str) -> tuple[Message, Message]:
    called = Message("assistant", tool_calls=(ToolCallSeen("c1", name, "{}"),))
    return called, Message("tool", tool_results=(ToolResultSeen("c1", text),))


@pytest.mark.parametrize(
    "text",
    [
        "<task-notification>\n<task-id>a1</task-id>\n<status>completed</status>",
        '<subagent_notification>{"agent_path": "a1", "status": {"errored": "403"}}',
        "Your background agent was interrupted when the session ended.",
        "The delegated work could not be found: unknown id",
        "子代理已完成",
    ],
)
def test_a_message_that_tells_of_an_end_is_a_notice(text: str):
    assert found(Message("user", text))


@pytest.mark.parametrize("text", ["What is in the file?", "mkxyz2q Thank you. And now?", "The file is empty."])
def test_another_message_is_none(text: str):
    assert not found(Message("user", text))


def test_what_the_model_said_is_none():
    assert not found(Message("assistant", "The agent has finished."))


@pytest.mark.parametrize(
    ("text", "leads"),
    [
        ("<task-id>a1</task-id><status>completed</status>", False),
        ('{"type": "idle_notification", "from": "agent-1", "idleReason": "available"}', False),
        ("Agent a1 completed. Its output: /tmp/a1.output", True),
        ("Agent a1 has ended, see notes/a1.md", True),
        ("Agent a1 has ended. Call read_notes for more.", True),
        ("The file /tmp/x is large.", False),
    ],
)
def test_a_notice_may_name_a_place_or_a_tool(text: str, leads: bool):
    """Another text may name one too."""
    tools = (ToolSpec("read_notes", "", {}), ToolSpec("bash", "", {}))
    assert notices_lead_on(Conversation("anthropic", "m", True, (Message("user", text),), tools=tools)) is leads


def test_the_second_of_two_equal_notices_is_another_one():
    one = Message("user", "Your subagent has ended.")
    assert len(found(one)) == 1 and len(found(one, one)) == 2 and set(found(one)) < set(found(one, one))


def test_the_result_of_a_delegating_call_is_about_that_call():
    assert [it.partition(":")[0] for it in found(*returned("spawn_agent", "The agent will tell when it is done."))] == [
        "1.1.1"
    ]


def test_what_the_model_asked_a_subagent_for_is_about_it():
    assert found(*returned("wait_agent", "It failed: 403")) and not found(*returned("wait_agent", '{"status": {}}'))
