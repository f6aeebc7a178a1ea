"""The model asks for what a subagent in the background has to say, by the name that its parent was told."""

import json
from typing import Any

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.fake_llm.script.subagent_results import call_for_begun

TEXT = {"type": "string"}
TARGETS = {"targets": {"type": "array", "items": TEXT}, "timeout_ms": {"type": "number"}}
CODEX = json.dumps({"agent_id": "01a2-7fb1", "nickname": "Euler"})


def talk(result: str, tool: str = "spawn_agent") -> Conversation:
    called = Message("assistant", tool_calls=(ToolCallSeen("c1", tool, "{}"),))
    return Conversation("anthropic", "m", True, (called, Message("tool", tool_results=(ToolResultSeen("c1", result),))))


def waits(name: str = "wait_agent", required: tuple[str, ...] = ("targets",), **properties: Any) -> tuple[ToolSpec]:
    return (ToolSpec(name, "", {"type": "object", "properties": properties, "required": list(required)}),)


@pytest.mark.parametrize(
    ("result", "tools", "asked"),
    [
        (CODEX, waits(**TARGETS), ("wait_agent", {"targets": ["01a2-7fb1"]})),
        ("Launched.\nagentId: a62e (internal)", waits("TaskOutput", ("task_id",), task_id=TEXT), {"task_id": "a62e"}),
        ("Agent ID: a-1.", waits("get_subagent_result", ("agent_id",), agent_id=TEXT), {"agent_id": "a-1"}),
        ("The helper task_2 works. You will be told.", waits("check_task", ("id",), id=TEXT), {"id": "task_2"}),
        ('{"sessionKey": "main:2"}', waits("sessions_yield", ("key",), key=TEXT), {"key": "main:2"}),
    ],
)
def test_the_name_in_the_result_of_the_call_is_the_argument(result: str, tools: Any, asked: object):
    found = call_for_begun(talk(result), tools)
    assert found is not None and asked in (found, found[1])


@pytest.mark.parametrize("name", ["stop_agent", "TaskStop", "multi_agent_v1.interrupt_agent", "cancel_subagent"])
def test_a_subagent_is_stopped_by_the_same_name(name: str):
    """A tool that only waits, or ends a shell, does not do that."""
    tools = (*waits(**TARGETS), *waits("KillShell", **TARGETS), *waits(name, ("agent_id",), agent_id=TEXT))
    assert call_for_begun(talk(CODEX), tools, "subagent_stop") == (name, {"agent_id": "01a2-7fb1"})
    assert call_for_begun(talk(CODEX), tools[:2], "subagent_stop") is None


@pytest.mark.parametrize(
    ("name", "says", "keys"),
    [
        ("send_input", "", ("target", "message")),
        ("SendMessage", "Sends a message to another agent.", ("to", "message")),
        ("sessions_send", "", ("sessionKey", "message")),
        ("resume_agent", "", ("agent_id", "prompt")),
    ],
)
def test_a_subagent_is_written_to_by_the_same_name(name: str, says: str, keys: tuple[str, str]):
    """What writes to a person is another tool, and so is one that begins a subagent."""
    words = dict.fromkeys(keys, TEXT)
    person = ToolSpec("send_message", "Writes to the user.", {"properties": {"to": TEXT, "text": TEXT}})
    other = ToolSpec("spawn_agent", "", {"properties": {"agent_id": TEXT, "message": TEXT}})
    tools = (person, other, ToolSpec(name, says, {"properties": words}))
    found = call_for_begun(talk(CODEX), tools, "subagent_message", "Go on.")
    assert found == (name, dict(zip(keys, ("01a2-7fb1", "Go on."), strict=True)))
    assert call_for_begun(talk(CODEX), tools[:2], "subagent_message", "Go on.") is None


@pytest.mark.parametrize(
    ("conversation", "tools"),
    [
        (talk("It was launched."), waits(**TARGETS)),
        (talk("job-1 began on gpt-5."), waits(**TARGETS)),
        (talk(CODEX, "read_file"), waits(**TARGETS)),
        (talk(CODEX), waits("close_agent", **TARGETS)),
        (talk(CODEX), waits(targets={"type": "object"})),
        (talk(CODEX), waits(timeout_ms={"type": "number"}, required=())),
    ],
)
def test_nothing_is_asked_without_a_name_or_a_tool_for_it(conversation: Conversation, tools: Any):
    assert call_for_begun(conversation, tools) is None
