"""Tools by role: a scenario's `shell` is an agent's Bash or exec_command, its `subagent` a Task or spawn_agent."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wedgehog.fake_llm.conversation import ToolSpec

SHELL = "shell"
SUBAGENT_TOOL = "subagent"
SILENT_COMMANDS = frozenset({"true", ":"})
"""Commands of the shell role that print nothing, not even the token of their call: their result is empty."""
_SHELL_NAME = re.compile(r"shell|bash|exec|run.*command|terminal", re.IGNORECASE)
_SHELL_PARAMETERS = ("command", "cmd", "commands", "script")
_SUBAGENT_NAME = re.compile(
    r"^(new_?)?task$|agent$|^agent|delegate|^(sessions_)?spawn(_agent)?$|sub_?agent|^(run|start|launch|dispatch)_?(task|agent)",
    re.IGNORECASE,
)
_PROMPT_PARAMETERS = ("prompt", "task", "message", "instructions", "input", "query", "request", "description")


@dataclass(frozen=True, slots=True)
class ShellTool:
    """The agent's shell tool: its name, the parameter for the command, and its JSON Schema."""

    name: str
    parameter: str
    takes_list: bool
    schema: Mapping[str, Any]

    def arguments(self, command: str) -> dict[str, Any]:
        """Arguments that run `command`; other required parameters are filled by their schema."""
        return _filled(self.schema, self.parameter, [command] if self.takes_list else command)


def find_shell(tools: Sequence[ToolSpec]) -> ShellTool | None:
    """The first advertised tool that runs commands, or None."""
    for tool in tools:
        if not _SHELL_NAME.search(tool.name):
            continue
        properties = (tool.schema or {}).get("properties") or {}
        for parameter in _SHELL_PARAMETERS:
            kinds = _kinds(properties.get(parameter))
            if kinds & {"string", "array"}:
                return ShellTool(tool.name, parameter, "string" not in kinds, tool.schema or {})
    return None


def _filled(schema: Mapping[str, Any] | None, parameter: str, value: object) -> dict[str, Any]:
    """Arguments with this value; other required parameters are filled by their schema."""
    properties = (schema or {}).get("properties", {})
    required = (schema or {}).get("required", ())
    return {parameter: value, **{name: fill(properties.get(name, {})) for name in required if name != parameter}}


@dataclass(frozen=True, slots=True)
class SubagentTool:
    """The agent's tool that gives work to a subagent: its name, the parameter for the prompt, and its JSON Schema."""

    name: str
    parameter: str
    schema: Mapping[str, Any]

    def arguments(self, prompt: str) -> dict[str, Any]:
        """Arguments that give `prompt` to a subagent."""
        return _filled(self.schema, self.parameter, prompt)


def names_subagent(name: str) -> bool:
    """Whether the name of a tool says that it gives work to a subagent."""
    return _SUBAGENT_NAME.search(name) is not None


def find_subagent(tools: Sequence[ToolSpec]) -> SubagentTool | None:
    """The first advertised tool that gives a text to a subagent, or None."""
    for tool in tools:
        properties = (tool.schema or {}).get("properties") or {}
        parameter = next((it for it in _PROMPT_PARAMETERS if "string" in _kinds(properties.get(it))), None)
        if parameter and names_subagent(tool.name):
            return SubagentTool(tool.name, parameter, tool.schema or {})
    return None


def find_named(tools: Sequence[ToolSpec], name: str) -> ToolSpec | None:
    """The advertised tool of this name, or of this name with a host's prefix: `mcp__host__weather`."""
    exact = next((tool for tool in tools if tool.name == name), None)
    return exact or next((tool for tool in tools if is_named(tool.name, name)), None)


def is_named(offered: str, name: str) -> bool:
    """Whether a tool is offered under this name, with a host's prefix, or with other signs between its words.

    >>> is_named("mcp__host__notes_read", "notes.read"), is_named("notes_write", "notes.read")
    (True, False)
    """
    return offered.endswith(name) or _words(offered).endswith(_words(name))


def _words(name: str) -> str:
    return "".join(filter(str.isalnum, name))


def _kinds(schema: Any) -> set[str]:
    """The types that a schema allows, unions included."""
    if not isinstance(schema, Mapping):
        return set()
    kind = schema.get("type", ())
    named = {kind} if isinstance(kind, str) else set(kind)
    return named.union(*(_kinds(one) for key in ("anyOf", "oneOf") for one in schema.get(key) or ()))


def fill(schema: Mapping[str, Any]) -> Any:
    """A small value that satisfies a JSON Schema: an enum's first value, a phrase, false, 1, required properties."""
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return fill(schema[key][0])
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    return _of_kind(kind, schema)


def _of_kind(kind: str, schema: Mapping[str, Any]) -> Any:
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: fill(properties.get(name, {})) for name in schema.get("required", properties)}
    if kind == "array":
        return [fill(schema.get("items", {}))] * int(schema.get("minItems", 0))
    simple: dict[str, Any] = {"boolean": False, "null": None, "integer": 1, "number": 1}
    if kind in ("integer", "number") and "minimum" in schema:
        return max(1, schema["minimum"])
    return simple.get(kind, "a short phrase")
