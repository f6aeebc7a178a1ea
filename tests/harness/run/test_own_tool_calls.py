"""Where a tool of the agent's own can stand in for a shell."""

from typing import Any

import pytest

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.own_tool_calls import any_tool_would_do, with_own_tool
from wedgehog.harness.run.tool_turn import CONTROL_TOOL
from wedgehog.harness.scenario.model import Scenario

NAME = "look_up"


def _scenario(*replies: list[str], **more: Any) -> Scenario:
    """A turn whose replies call a shell with these commands."""
    model = [[{"tool": "shell", "args": {"command": command}} for command in reply] for reply in replies]
    turn = {"user": "Go on.", "model": [*model, {"text": "Done. {nonce}"}]}
    return Scenario.model_validate({"name": "s", "why": "x", "turns": [turn], **more})


def _called(scenario: Scenario, args: dict[str, Any], *, shell: bool = False, **keys: Any) -> list[Any]:
    """The names and arguments of the calls that the agent gets."""
    keys = {"command": ["a", "{message}", "{llm_url}"], "own_tool": {"name": NAME, "args": args}, **keys}
    spec = AgentSpec.model_validate({"name": "a", "wire": "openai-chat", **keys})
    control = ControlFacts(True, tools=frozenset({NAME, "pay", f"mcp__{CONTROL_TOOL}"}), shell=shell)
    played = with_own_tool(scenario, spec, control)
    items = [item for turn in played.turns for reply in turn.replies for item in reply.items]
    return [(item.name, item.args) for item in items if hasattr(item, "args")]


def test_each_command_has_a_number_and_an_equal_one_the_same():
    """So calls are as different as the commands are."""
    scenario = _scenario(["echo one"], ["echo two"], ["echo one"])
    assert _called(scenario, {"id": "{n}"}) == [(NAME, {"id": it}) for it in ("1", "2", "1")]


@pytest.mark.parametrize(
    "scenario",
    [
        _scenario(["sleep 5"]),
        _scenario(["true"]),
        _scenario(["echo half; exit 3"]),
        _scenario(["echo one"], faults=[{"at": {"tool": 1, "when": "started"}, "do": "abort"}]),
    ],
)
def test_what_only_a_shell_can_do_stays_a_command(scenario: Scenario):
    """It waits, prints nothing, fails, or a fault waits for its beginning."""
    assert not any_tool_would_do(scenario)
    assert [name for name, _ in _called(scenario, {"id": "{n}"})] == ["shell"]


def test_equal_calls_may_look_like_a_loop():
    """So without a number no turn has many, and no reply has two."""
    few, many = _scenario(["echo 1"], ["echo 2"]), _scenario(["echo 1"], ["echo 2"], ["echo 3"])
    at_once = _scenario(["echo 1", "echo 2"])
    assert _called(few, {"id": "7"}) == [(NAME, {"id": "7"})] * 2
    for scenario in (many, at_once):
        assert {name for name, _ in _called(scenario, {"id": "7"})} == {"shell"}


def test_an_agent_with_a_shell_keeps_it():
    """And so does one whose model writes its calls in its text, or that names a tool of our host, or none that it has.

    Our host knows a call by its arguments alone.
    """
    scenario, other = _scenario(["echo one"]), {"name": "gone", "args": {}}
    assert _called(scenario, {}, own_tool={"name": f"mcp__{CONTROL_TOOL}"})[0][0] == "shell"
    in_text = {"shell": "```bash\n{command}\n```"}
    assert _called(scenario, {"id": "7"}, shell=True)[0][0] == "shell"
    assert _called(scenario, {"id": "7"}, calls_in_text=in_text)[0][0] == "shell"
    assert _called(scenario, {"id": "7"}, own_tool=other)[0][0] == "shell"
