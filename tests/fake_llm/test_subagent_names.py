"""A script's subagent is one that the agent has: its name stands where only the model reads it."""

from typing import Any

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolSpec
from wedgehog.fake_llm.reply import Reply, ToolCall
from wedgehog.fake_llm.script.position import Positions
from wedgehog.fake_llm.script.roles import find_subagent
from wedgehog.fake_llm.script.subagent_names import named_in
from wedgehog.fake_llm.script.turns import ScriptedTurn, TurnScript

TEXT = {"type": "string"}
TASK = """Launch a new agent to handle complex, multistep tasks autonomously.

When NOT to use the Task tool:
- If no available agent is a good fit for the task, use other tools directly

Usage notes:
1. Launch multiple agents concurrently whenever possible
2. Note: its outputs should be trusted

Available agent types and the tools they have access to:
- explore: Fast agent for exploring codebases. Use this to find files (eg. "src/**/*.tsx").
- general: General-purpose agent for multi-step tasks."""
SYSTEM = """# Rules
- **Conventions:** Follow them.

The following sub-agents are available:

- codebase_investigator -> The specialized tool for codebase analysis.
- generalist -> A general-purpose agent with access to all tools.

Remember that the closest sub-agent should be used.

For example:
- license-agent -> Should be used for licenses."""
TAGS = """<available_subagents>
  <subagent>
    <name>reviewer</name>
    <description>Reads.</description>
  </subagent>
</available_subagents>
<available_skills>
  <skill>
    <name>pdf</name>
  </skill>
</available_skills>"""


def arguments(called: str, said: str, system: str = "", **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"prompt": TEXT, **properties}, "required": ["prompt", *properties]}
    tool = find_subagent([ToolSpec(called, said, schema)])
    assert tool is not None
    return tool.arguments("Look.", system)


@pytest.mark.parametrize("words", ["prompt", "task", "goal"])
def test_a_tool_for_subagents_takes_its_text_under_several_names(words: str):
    """Hermes' `delegate_task` has a goal and its context, and neither is required."""
    tool = find_subagent([ToolSpec("delegate_task", "", {"properties": {words: TEXT, "context": TEXT}})])
    assert tool is not None
    assert tool.arguments("Look.") == {words: "Look."}


def test_the_name_is_one_that_the_description_of_the_tool_lists():
    """The general one, which has most tools; a phrase in its place calls no subagent."""
    found = arguments("task", TASK, description=TEXT, subagent_type=TEXT)
    assert found == {"prompt": "Look.", "description": "a short phrase", "subagent_type": "general"}


def test_the_name_is_one_that_the_system_text_lists():
    """Only under the heading that announces them: a rule and an example are none."""
    found = arguments("invoke_agent", "Invoke a subagent.", SYSTEM, agent_name=TEXT)
    assert found == {"prompt": "Look.", "agent_name": "generalist"}


def test_a_scripted_subagent_is_called_by_a_name_from_the_request():
    """The model that is played reads the system text, as a real one does."""
    schema = {"type": "object", "properties": {"prompt": TEXT, "agent_name": TEXT}, "required": ["agent_name"]}
    said = (Message("system", SYSTEM), Message("user", "mkqrst1q Read it."))
    positions = Positions("wbcdf")
    positions.begin(1, "mkqrst1q")
    turn = ScriptedTurn((Reply((ToolCall("subagent", {"prompt": "Read it."}),)),), "NONCE")
    script = TurnScript(positions, {1: turn})
    asked = Conversation("gemini", "m", True, said, tools=(ToolSpec("invoke_agent", "", schema),))
    (call,) = script.answer(1, asked).items
    assert isinstance(call, ToolCall)
    assert call.args == {"prompt": "wbcdf1x1x1a0 Read it.", "agent_name": "generalist"}


def test_a_scripted_subagent_runs_while_its_parent_waits():
    """Some agents start each one in the background unless they are told; other switches stay as they are."""
    switch = {"type": "boolean"}
    kinds = {"prompt": TEXT, "run_in_background": switch, "verbose": switch, "background": TEXT}
    found = find_subagent((ToolSpec("Agent", TASK, {"properties": kinds, "required": ["prompt"]}),))
    assert found is not None and found.arguments("Look.") == {"prompt": "Look.", "run_in_background": False}


SWITCH = {"type": "boolean"}
MODE = {"type": "string", "enum": ["sync", "background"]}


@pytest.mark.parametrize(
    ("parameter", "schema", "waits", "beside"),
    [
        ("run_in_background", SWITCH, False, True),
        ("is_background", {"type": ["boolean", "null"]}, False, True),
        ("wait", SWITCH, True, False),
        ("mode", MODE, "sync", "background"),
    ],
)
def test_a_subagent_works_in_the_background_where_its_tool_has_an_argument_for_that(
    parameter: str, schema: dict[str, Any], waits: object, beside: object
):
    kinds = {"prompt": TEXT, parameter: schema}
    found = find_subagent((ToolSpec("Agent", TASK, {"properties": kinds, "required": ["prompt"]}),))
    assert found is not None and found.offers_background
    assert found.arguments("Look.") == {"prompt": "Look.", parameter: waits}
    assert found.arguments("Look.", background=True) == {"prompt": "Look.", parameter: beside}


@pytest.mark.parametrize(
    ("name", "other", "offers"),
    [
        ("multi_agent_v1.spawn_agent", "multi_agent_v1.wait_agent", True),
        ("sessions_spawn", "sessions_yield", True),
        ("spawn_agent", "get_subagent_result", True),
        ("spawn_agent", "close_agent", False),
        ("task", "wait", False),
    ],
)
def test_a_tool_that_starts_a_subagent_beside_one_that_waits_for_it_returns_at_once(
    name: str, other: str, offers: bool
):
    schema = {"properties": {"prompt": TEXT}, "required": ["prompt"]}
    found = find_subagent((ToolSpec(name, TASK, schema), ToolSpec(other, "", {"properties": {}})))
    assert found is not None and found.offers_background is offers
    assert found.arguments("Look.", background=True) == {"prompt": "Look."}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (TAGS, "reviewer"),
        ("Delegate to one of the following coworkers: Senior Writer, Editor\nGive it all it needs.", "Senior Writer"),
        ("**Available agents**\n\n* `coder` (default): Writes code.\n* `reader`: Reads.", "coder"),
        ("Available Subagents\n1. default\n2. worker", "default"),
        ("The following tools are available:\n- read: Reads.", ""),
        ("- plan: A plan, without a heading.", ""),
        ("", ""),
    ],
)
def test_names_stand_in_a_list_below_its_heading(text: str, name: str):
    """Items, tags, or names in the line of the heading."""
    assert named_in(text) == name


def test_a_listed_choice_and_an_unlisted_agent_stay_as_they_were():
    """A schema with an enum says itself what fits; without any list there is only a phrase."""
    choice = {"type": "string", "enum": ["worker", "explorer"]}
    assert arguments("spawn_agent", TASK, agent_type=choice)["agent_type"] == "worker"
    assert arguments("spawn_agent", "Start one.", agent_name=TEXT)["agent_name"] == "a short phrase"
    assert arguments("task", TASK, model=TEXT)["model"] == "a short phrase"


def test_a_tool_that_writes_to_a_subagent_begins_one_only_where_no_other_does():
    """In some agents a message to another one is how work is given."""
    schema = {"properties": {"message": TEXT, "prompt": TEXT}}
    writes, begins = ToolSpec("message_agent", "", schema), ToolSpec("spawn_agent", "", schema)
    names = [found.name for tools in ([writes, begins], [writes]) if (found := find_subagent(tools))]
    assert names == ["spawn_agent", "message_agent"]
