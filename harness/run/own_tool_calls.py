"""Calls of a tool of the agent's own, in a scenario that calls a shell only to see a tool work."""

import re
from collections.abc import Mapping

from wedgehog.fake_llm.script.items import ItemConfig, ReplyConfig, ToolConfig
from wedgehog.fake_llm.script.roles import SHELL
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.tool_turn import CONTROL_TOOL
from wedgehog.harness.scenario.model import Scenario

_ONLY_PRINTS = re.compile(r"echo [\w ./,-]+")
"""A command that does nothing which another tool could not do in its place."""
ALIKE_IN_A_TURN = 2
"""The most equal calls of a turn: more look like a loop, which an agent may stop."""


def with_own_tool(scenario: Scenario, spec: AgentSpec, control: ControlFacts) -> Scenario:
    """The scenario with the tool of the spec's `own_tool` in the place of a shell that the agent does not have."""
    own = spec.own_tool
    if own is None or control.shell or spec.calls_in_text or own.name not in control.tools - _of_our_host(control):
        return scenario
    if not any_tool_would_do(scenario) or not (own.is_numbered or _few(scenario)):
        return scenario
    numbers = {command: number for number, command in enumerate(dict.fromkeys(scenario.commands), 1)}
    schema = control.schemas.get(own.name, {})
    calls = {command: own.call(number, schema) for command, number in numbers.items()}
    turns = [
        it.model_copy(update={"model": [_replaced(reply, own.name, calls) for reply in it.model]})
        for it in scenario.turns
    ]
    return scenario.model_copy(update={"turns": turns})


def _of_our_host(control: ControlFacts) -> set[str]:
    """Our host knows a call by its arguments, and equal ones of two turns can't be told apart."""
    return {name for name in control.tools if name.endswith(CONTROL_TOOL)}


def any_tool_would_do(scenario: Scenario) -> bool:
    """Whether its shell's commands only print, and nothing waits for a moment of one."""
    moments = [*(it.at for it in scenario.faults), *(it.during for it in scenario.turns if it.during is not None)]
    in_a_tool = any(at.tool is not None for at in moments)
    shells = [call for turn in scenario.turns for reply in turn.model for call in _shells(reply)]
    plain = all(it.raw_args is None and it.args.keys() == {"command"} for it in shells)
    prints = all(_ONLY_PRINTS.fullmatch(command) for command in scenario.commands)
    return bool(shells) and not in_a_tool and not scenario.conversations and plain and prints


def _few(scenario: Scenario) -> bool:
    """Whether no turn has more calls than may be equal, and no reply two."""
    counts = [[len(_shells(reply)) for reply in turn.model] for turn in scenario.turns]
    return all(sum(calls) <= ALIKE_IN_A_TURN and max(calls, default=0) < ALIKE_IN_A_TURN for calls in counts)


def _shells(reply: ReplyConfig) -> list[ToolConfig]:
    return [it for it in _items(reply) if isinstance(it, ToolConfig) and it.tool == SHELL]


def _items(reply: ReplyConfig) -> list[ItemConfig]:
    return reply.root if isinstance(reply.root, list) else [reply.root]


def _replaced(reply: ReplyConfig, name: str, calls: Mapping[str, dict[str, object]]) -> ReplyConfig:
    """The reply with a call of this tool for each command."""
    if not _shells(reply):
        return reply
    return ReplyConfig([_call(it, name, calls) for it in _items(reply)])


def _call(item: ItemConfig, name: str, calls: Mapping[str, dict[str, object]]) -> ItemConfig:
    if not isinstance(item, ToolConfig) or item.tool != SHELL:
        return item
    return item.model_copy(update={"tool": name, "args": calls[item.args["command"]]})
