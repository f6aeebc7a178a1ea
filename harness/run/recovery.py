"""What the recovery message asks for: a round of each kind of tool that worked in the control run, then an answer."""

from wedgehog.fake_llm.reply import Reply, Text, ToolCall
from wedgehog.fake_llm.script.roles import SHELL
from wedgehog.fake_llm.script.schema_values import fill
from wedgehog.fake_llm.script.turns import ScriptedTurn
from wedgehog.harness.run.control import CONTROL_TOOLS, ControlFacts
from wedgehog.harness.run.tool_turn import CONTROL_TOOL
from wedgehog.harness.scenario.model import Scenario

COMMAND = "echo alive"
LAST_WORDS = Reply((Text("All is well again. {nonce}"),))


def recovery_calls(scenario: Scenario, control: ControlFacts | None) -> tuple[ToolCall, ...]:
    """The tool calls of a recovery message: the agent's shell, and a tool of our host that neither waits nor fails."""
    working = control.working_tools if control is not None else ()
    shell = (ToolCall(SHELL, {"command": COMMAND}),) if SHELL in working else ()
    return shell + (_of_host(scenario) if CONTROL_TOOL in working else ())


def _of_host(scenario: Scenario) -> tuple[ToolCall, ...]:
    tools = (scenario.tools or CONTROL_TOOLS).items()
    name, tool = next(((name, it) for name, it in tools if it.error is None and not it.delay_s), ("", None))
    return () if tool is None else (ToolCall(name, fill(tool.schema_of_input)),)


def recovery_turn(calls: tuple[ToolCall, ...], nonce: str) -> ScriptedTurn:
    """One round for each call, as an agent may run one at a time; the last words if it no longer offers the tool."""
    return ScriptedTurn((*(Reply((call,)) for call in calls), LAST_WORDS), nonce, only_offered=True)
