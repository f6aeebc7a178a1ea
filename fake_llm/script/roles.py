"""Tools by role: a scenario's `shell` is an agent's Bash, its `subagent` a Task, its `ask_user` an AskUserQuestion."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wedgehog.fake_llm.conversation import ToolSpec
from wedgehog.fake_llm.script.schema_values import fill
from wedgehog.fake_llm.script.subagent_names import chooses, named_in

SHELL = "shell"
SUBAGENT_TOOL = "subagent"
SUBAGENT_RESULT = "subagent_result"
SUBAGENT_STOP = "subagent_stop"
SUBAGENT_MESSAGE = "subagent_message"
FETCH = "fetch"
ASK_USER = "ask_user"
SILENT_COMMANDS = frozenset({"true", ":"})
"""Commands of the shell role that print nothing, not even the token of their call: their result is empty."""
_SHELL_NAME = re.compile(
    r"shell|bash|exec|run.*command|terminal|^(mcp__.*__)?(z?sh|cmd|command|console|cli|run)$", re.IGNORECASE
)
_SHELL_PARAMETERS = ("command", "cmd", "commands", "script")
_SUBAGENT_NAME = re.compile(
    r"^(new_?)?task$|agent$|^agent|delegate|^(sessions_)?spawn(_agent)?$|sub_?agent|^(run|start|launch|dispatch)_?(task|agent)",
    re.IGNORECASE,
)
_PROMPT_PARAMETERS = ("prompt", "task", "message", "instructions", "goal", "input", "query", "request", "description")
_BACKGROUND_PARAMETERS = ("run_in_background", "in_background", "background", "is_background", "run_async", "async")
_WAIT_PARAMETERS = ("wait", "wait_for_completion", "wait_for_result", "blocking")
_BACKGROUND_MODE = re.compile(r"^(in_)?background$|^async(hronous)?$|^detached?$", re.IGNORECASE)
_SPAWNS = re.compile(r"spawn|launch|start", re.IGNORECASE)
_WAITS = re.compile(
    r"(^|[_.])(wait|join|await|collect)(_for)?(_?(sub)?_?agents?|_?tasks?)?$|sessions?_yield"
    r"|(get|read|check|poll)_?(sub)?_?(agent|task)_?(result|output|status)?$|(agent|task)_?(result|output)$",
    re.IGNORECASE,
)
"""A tool with which the model waits for a subagent that works beside it, or reads its result."""
_STOPS = re.compile(
    r"(^|[_.])(stop|kill|cancel|interrupt|terminate|abort)_?(the_)?(sub_?)?(agent|task)s?$"
    r"|(agent|task)_?(stop|kill|cancel|interrupt|terminate|abort)$",
    re.IGNORECASE,
)
"""A tool with which the model stops a subagent that works beside it."""
_MESSAGES = re.compile(
    r"(^|[_.])(send|write|post)_?(an?_)?(input|message)(_?to)?(_?(the_)?(sub_?)?(agent|task|session|thread))?$"
    r"|(^|[_.])(message|steer|resume|continue|prompt|follow_?up)_?(the_)?(sub_?)?(agent|task)$"
    r"|(agent|task)_?(send|message|input|steer|continue|resume)$|^sessions_send$",
    re.IGNORECASE,
)
"""A tool with which the model writes to a subagent that it has begun."""
_ENDS = re.compile(r"(^|[_.])(close|stop|kill|cancel|interrupt|resume|list)_?", re.IGNORECASE)
_FETCH_NAME = re.compile(
    r"^(?!.*browser).*(fetch|scrape|crawl|browse|web_?(page|read)|https?_?(get|request)|curl"
    r"|(read|open|get|visit|load|view|extract)_?(the_?)?(url|uri|web|page|link|site)|^(http|url|visit)$)",
    re.IGNORECASE,
)
_QUESTION_NAME = re.compile(
    r"(?<![a-z])ask_?(the_?)?(user|human|question|follow_?up|clarif)|(user|human)_?(input|question|feedback)"
    r"|^(mcp__.*__)?(ask|question|clarify)$",
    re.IGNORECASE,
)
"""A tool with which the model asks its user."""
_URL_PARAMETERS = ("url", "uri", "urls", "link", "href", "address")


@dataclass(frozen=True, slots=True)
class OneValueTool:
    """An agent's tool that takes a command or an address: its name, the parameter for that, and its JSON Schema."""

    name: str
    parameter: str
    takes_list: bool
    schema: Mapping[str, Any]

    def arguments(self, value: str) -> dict[str, Any]:
        """Arguments with this command or address; other required parameters are filled by their schema."""
        return _filled(self.schema, self.parameter, [value] if self.takes_list else value)


def find_shell(tools: Sequence[ToolSpec]) -> OneValueTool | None:
    """The first advertised tool that runs commands, or None."""
    return _find(tools, _SHELL_NAME, _SHELL_PARAMETERS)


def find_fetch(tools: Sequence[ToolSpec]) -> OneValueTool | None:
    """The first advertised tool that reads the page at an address, or None.

    >>> find_fetch([ToolSpec("WebFetch", schema={"properties": {"url": {"type": "string"}}})]).name
    'WebFetch'
    """
    return _find(tools, _FETCH_NAME, _URL_PARAMETERS)


def names_question(name: str) -> bool:
    """Whether the name of a tool says that it asks the user something.

    >>> names_question("AskUserQuestion"), names_question("ask_followup_question"), names_question("task_user")
    (True, True, False)
    """
    return _QUESTION_NAME.search(name) is not None


def find_question(tools: Sequence[ToolSpec]) -> ToolSpec | None:
    """The first advertised tool that asks the user something, or None."""
    return next((tool for tool in tools if names_question(tool.name) and (tool.schema or {}).get("properties")), None)


def _find(tools: Sequence[ToolSpec], called: re.Pattern[str], parameters: Sequence[str]) -> OneValueTool | None:
    """The first tool with such a name and one of these parameters, which takes a text or a list."""
    for tool in tools:
        if not called.search(tool.name):
            continue
        properties = (tool.schema or {}).get("properties") or {}
        for parameter in parameters:
            kinds = kinds_of(properties.get(parameter))
            if kinds & {"string", "array"}:
                return OneValueTool(tool.name, parameter, "string" not in kinds, tool.schema or {})
    return None


def value_for(schema: Mapping[str, Any], parameter: str, text: str) -> dict[str, Any] | None:
    """Arguments with this text, or a list of it; None if the parameter takes neither."""
    kinds = kinds_of((schema.get("properties") or {}).get(parameter))
    if not kinds & {"string", "array"}:
        return None
    return _filled(schema, parameter, text if "string" in kinds else [text])


def _filled(schema: Mapping[str, Any] | None, parameter: str, value: object) -> dict[str, Any]:
    return filled(schema or {}, {parameter: value})


def filled(schema: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with these values; other required parameters are filled by their schema."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    return {**given, **{name: fill(properties.get(name, {}), schema) for name in required if name not in given}}


@dataclass(frozen=True, slots=True)
class SubagentTool:
    """The agent's tool that gives work to a subagent: its name, the parameter for the prompt, and its JSON Schema."""

    name: str
    parameter: str
    schema: Mapping[str, Any]
    description: str = ""
    never_waits: bool = False
    """Whether its call returns at once in any case: another tool waits for the subagent."""

    @property
    def offers_background(self) -> bool:
        """Whether its subagent can work beside the parent's conversation."""
        return self.never_waits or bool(self._where(background=True))

    def arguments(self, prompt: str, system: str = "", *, background: bool = False) -> dict[str, Any]:
        """Arguments that give `prompt` to a subagent whose end the agent waits for, or not, if it can choose.

        A name that must be given is one that the model was told.
        """
        properties = self.schema.get("properties", {})
        filled = {**_filled(self.schema, self.parameter, prompt), **self._where(background=background)}
        choices = [it for it in filled if it != self.parameter and chooses(it, properties.get(it))]
        name = named_in(self.description, system) if choices else ""
        return {**filled, **dict.fromkeys(choices, name)} if name else filled

    def _where(self, *, background: bool) -> dict[str, Any]:
        """The arguments that say whether the subagent works in the background; empty if the model has no choice."""
        properties = self.schema.get("properties", {})
        flags = dict.fromkeys(_BACKGROUND_PARAMETERS, background) | dict.fromkeys(_WAIT_PARAMETERS, not background)
        chosen: dict[str, Any] = {it: value for it, value in flags.items() if "boolean" in kinds_of(properties.get(it))}
        for name, schema in properties.items():
            modes = schema.get("enum", ()) if isinstance(schema, Mapping) else ()
            beside = [it for it in modes if isinstance(it, str) and _BACKGROUND_MODE.search(it)]
            if len(beside) == 1 and len(modes) > 1:
                chosen[name] = beside[0] if background else next(it for it in modes if it not in beside)
        return chosen


def names_subagent(name: str) -> bool:
    """Whether the name of a tool says that it gives work to a subagent.

    >>> names_subagent("spawn_agent"), names_subagent("wait_agent"), names_subagent("close_agent")
    (True, False, False)
    """
    return _SUBAGENT_NAME.search(name) is not None and not (_WAITS.search(name) or _ENDS.search(name))


def names_wait(name: str) -> bool:
    """Whether the name of a tool says that it waits for a subagent, or reads what that has to say.

    >>> names_wait("multi_agent_v1.wait_agent"), names_wait("get_subagent_result"), names_wait("spawn_agent")
    (True, True, False)
    """
    return _WAITS.search(name) is not None


def names_stop(name: str) -> bool:
    """Whether the name of a tool says that it stops a subagent.

    >>> names_stop("multi_agent_v1.interrupt_agent"), names_stop("TaskStop"), names_stop("KillShell")
    (True, True, False)
    """
    return _STOPS.search(name) is not None


def names_message(name: str) -> bool:
    """Whether the name of a tool says that it writes to a subagent, or perhaps to somebody else.

    >>> names_message("multi_agent_v1.send_input"), names_message("SendMessage"), names_message("spawn_agent")
    (True, True, False)
    """
    return _MESSAGES.search(name) is not None


def find_subagent(tools: Sequence[ToolSpec]) -> SubagentTool | None:
    """The first advertised tool that gives a text to a subagent, or None; one that writes to it only without others."""
    for tool in sorted(tools, key=lambda it: names_message(it.name)):
        properties = (tool.schema or {}).get("properties") or {}
        parameter = next((it for it in _PROMPT_PARAMETERS if "string" in kinds_of(properties.get(it))), None)
        if parameter and names_subagent(tool.name):
            never_waits = _SPAWNS.search(tool.name) is not None and any(names_wait(it.name) for it in tools)
            return SubagentTool(tool.name, parameter, tool.schema or {}, tool.description, never_waits)
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


def same_name(one: str, other: str) -> bool:
    """Whether two names of a tool are equal but for the signs between their words.

    >>> same_name("notes_read", "notes.read"), same_name("my_notes_read", "notes.read")
    (True, False)
    """
    return _words(one) == _words(other)


def _words(name: str) -> str:
    return "".join(filter(str.isalnum, name))


def kinds_of(schema: Any) -> set[str]:
    """The types that a schema allows, unions included."""
    if not isinstance(schema, Mapping):
        return set()
    kind = schema.get("type", ())
    named = {kind} if isinstance(kind, str) else set(kind)
    return named.union(*(kinds_of(one) for key in ("anyOf", "oneOf") for one in schema.get(key) or ()))
