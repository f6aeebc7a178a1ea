"""What a control run says of our own tools: which scenarios apply, and what main calls look like in them."""

from typing import Any

import pytest

from wedgehog.fake_llm.conversation import Conversation, Message, ToolSpec
from wedgehog.fake_llm.script.main_call import MainShape
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.events.run import CpuWait, CpuWaitSeen
from wedgehog.harness.run.control import ControlFacts, read_control, shape_in
from wedgehog.harness.run.skip_reasons import why_skipped
from wedgehog.harness.run.tool_turn import CONTROL_TOOL
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.testing import HistoryBuilder

MINE = f"mcp__host__{CONTROL_TOOL}"
TALK = [{"user": "x", "model": [{"tool": "weather", "args": {}}, {"text": "{nonce}"}]}]


def scenario(**words: Any) -> Scenario:
    told = {"name": "a", "why": "w", "turns": TALK, "tools": {"weather": {}}}
    return Scenario.model_validate(told | words)


def spec(**words: Any) -> AgentSpec:
    command = ("x", "{message}", *words.pop("more", ()))
    return AgentSpec(name="a", wire="anthropic", command=command, **words)


HTTP = {"tools": "http", "more": ("{tool_url}",)}
STDIO = {"tools": "stdio", "more": ("{tool_command}",)}
CONTROL = ControlFacts(True, shape=MainShape(frozenset({"bash", MINE})), tools=frozenset({"bash", MINE}), shell=True)
REFUSE = {"link": "tool:mcp", "at": {"phase": "connect"}, "do": "refuse"}
STALL_PIPE = {"link": "ipc:mcp", "at": {"tool": 1}, "do": {"stall": "forever"}}
DENY = {"link": "tool:mcp", "at": {"tool": 1}, "do": "unauthorized"}
LOSE = {"link": "tool:mcp", "at": {"tool": 1}, "do": "lose_result"}


@pytest.mark.parametrize(
    ("agent", "words", "control", "why"),
    [
        (HTTP, {}, CONTROL, ""),
        (STDIO, {"faults": [LOSE]}, CONTROL, ""),
        ({}, {}, CONTROL, "the spec does not say how the agent finds our tool host (tools)"),
        (HTTP, {}, ControlFacts(True, tools=frozenset({"bash"})), "the agent did not offer our tool host's tools"),
        (STDIO, {"faults": [REFUSE]}, CONTROL, "the fault fires on MCP over HTTP, and the agent uses stdio"),
        (STDIO, {"faults": [DENY]}, CONTROL, "the fault fires on MCP over HTTP, and the agent uses stdio"),
        (HTTP, {"faults": [DENY]}, CONTROL, ""),
        (HTTP, {"faults": [STALL_PIPE]}, CONTROL, "the fault fires on MCP over stdio, and the agent uses HTTP"),
        (HTTP, {"store": {}}, CONTROL, "the spec does not say how the agent finds our database ({store_url})"),
        ({**HTTP, "env": {"DB": "{store_url}"}}, {"store": {}}, CONTROL, ""),
        (HTTP, {"turns": [{"user": "x", "model": [{"tool": "fetch"}]}]}, CONTROL, "the agent advertises no tool fetch"),
    ],
)
def test_a_scenario_is_skipped_with_the_reason(agent: Any, words: Any, control: ControlFacts, why: str):
    """Its own tools need not be known from the control run, where the host had others."""
    found = why_skipped(scenario(**words), spec(**agent), control)
    assert found.startswith(why) and bool(found) is bool(why)


@pytest.mark.parametrize(("waited_s", "told"), [(0.1, False), (2.5, True)])
def test_tools_that_were_not_offered_on_a_busy_machine_are_told_with_the_wait(waited_s: float, told: bool):
    """A tool server that starts slowly may be ready only after the first request: the load is a possible cause."""
    tell = HistoryBuilder()
    tell.message()
    tell.wait(4.0)
    tell.add(CpuWaitSeen(turn=1, waits=(CpuWait(0.0, 4.0, waited_s, 0.0, 0.0),)))
    tell.answer_step(1)
    facts = read_control(tell.end().seal(), {1: MainShape(frozenset({"bash"}))}, True, 1)
    why = why_skipped(scenario(), spec(**HTTP), facts)
    says = "the agent did not offer our tool host's tools to the model in its control run"
    wait = ", on a busy machine: of the 4.0 s until its request, 2.5 s were waits for a processor"
    assert why == says + (wait if told else "")


def call(*tools: str, system: str = "") -> Conversation:
    said = (*((Message("system", system),) if system else ()), Message("user", "x"))
    return Conversation("anthropic", "m", True, said, tuple(ToolSpec(name) for name in tools))


def test_main_calls_are_known_by_the_scenarios_tools_in_place_of_the_controls():
    """With the host's name before them, as the control's had it; the agent's own tools decide where it has some."""
    shape = shape_in(scenario(), CONTROL)
    assert shape is not None and shape.tools == {"bash", "mcp__host__weather"}
    assert shape.fits(call("bash", "mcp__host__weather")) and shape.fits(call("bash"))
    assert not shape.fits(call())


def test_an_agent_whose_only_tools_are_the_hosts_is_known_without_them():
    """The host may be gone: then its main call has no tools, and the system text decides."""
    only = ControlFacts(True, shape=MainShape(frozenset({MINE})), tools=frozenset({MINE}))
    shape = shape_in(scenario(), only)
    assert shape is not None and shape.fits(call("mcp__host__weather"))
    bare = MainShape.of(call(system="You are helpful."))
    with_system = ControlFacts(True, shape=MainShape(frozenset({MINE}), bare.system), tools=frozenset({MINE}))
    shape = shape_in(scenario(), with_system)
    assert shape is not None and shape.fits(call(system="You are helpful."))
    assert not shape.fits(call(system="Write a title for this."))


def test_a_tool_may_be_offered_with_other_signs_between_its_words():
    """Some providers refuse the dot that MCP allows, so an agent offers another name."""
    only = ControlFacts(True, shape=MainShape(frozenset({MINE})), tools=frozenset({MINE}))
    turns = [{"user": "x", "model": [{"tool": "notes.read", "args": {}}, {"text": "{nonce}"}]}]
    shape = shape_in(scenario(tools={"notes.read": {}}, turns=turns), only)
    assert shape is not None and shape.fits(call("mcp__host__notes_read"))
    assert not shape.fits(call("mcp__host__notes_write"))


def test_a_scenario_without_tools_of_its_own_has_the_controls():
    """So the shape stays what it was."""
    plain = scenario(tools={}, turns=[{"user": "x", "model": [{"text": "{nonce}"}]}])
    shape = shape_in(plain, CONTROL)
    assert shape is not None and CONTROL.shape is not None and shape.tools == CONTROL.shape.tools
