"""The roles `subagent_result`, `subagent_stop` and `subagent_message`: what the model does with a subagent later."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from wedgehog.fake_llm.conversation import Conversation, ToolSpec
from wedgehog.fake_llm.script.roles import (
    SUBAGENT_MESSAGE,
    SUBAGENT_RESULT,
    SUBAGENT_STOP,
    filled,
    kinds_of,
    names_message,
    names_stop,
    names_subagent,
    names_wait,
    value_for,
)

_HANDLE = re.compile(r"^(?:(?:sub_?)?agent|task|job|run|thread|session)?_?(?:ids?|names?|keys?|handles?|targets?)$")
"""A parameter, or a property of a result, that says which subagent is meant."""
_IN_TEXT = re.compile(
    r"(?:agent|task|job|run|thread|session)[ _-]?(?:id|name|key|handle)\W{1,4}([\w./:-]*\w)", re.IGNORECASE
)
_LOOKS_LIKE_ONE = re.compile(r"\b(?=[\w-]*\d)[A-Za-z]+[_-][\w-]*\w")
"""A word such as `task_2` or `bg-17`. Of two it is not known which one is meant."""


_RECIPIENT = re.compile(r"^(?:to|recipient|receiver)$")
"""A parameter that says whom a message is for."""
_AGENTS = re.compile(r"agent|task|teammate|thread|session|worker|send_?input", re.IGNORECASE)
_WORDS = ("message", "text", "content", "input", "prompt", "instructions", "body")


OF_SUBAGENTS: Mapping[str, Callable[[str], bool]] = {
    SUBAGENT_RESULT: names_wait,
    SUBAGENT_STOP: names_stop,
    SUBAGENT_MESSAGE: names_message,
}
"""Which tools, by name, have a role for a subagent that was begun before."""


def call_for_begun(
    conversation: Conversation, tools: Sequence[ToolSpec], role: str = SUBAGENT_RESULT, text: str = ""
) -> tuple[str, dict[str, Any]] | None:
    """The tool that waits for a subagent or reads its result, and its arguments for the one that was begun last.

    With the role `subagent_stop`, the tool that stops it; with `subagent_message`, the one that sends it `text`. None
    if there is no such tool, or the result of the call that began it does not say its name.
    """
    handle = next(_handles(conversation), "")
    if role == SUBAGENT_MESSAGE:
        return next((found for tool in tools if (found := _message(tool, handle, text))), None) if handle else None
    for tool in tools if handle else ():
        properties = (tool.schema or {}).get("properties") or {}
        name = next((it for it in properties if _HANDLE.search(_snake(it))), "")
        if name and OF_SUBAGENTS[role](tool.name) and (value := value_for(tool.schema or {}, name, handle)) is not None:
            return tool.name, value
    return None


def _message(tool: ToolSpec, handle: str, text: str) -> tuple[str, dict[str, Any]] | None:
    """The call that sends a text to a subagent; None for a tool that does not, or writes to a person.

    >>> words = {"type": "string"}
    >>> tool = ToolSpec("send_input", "", {"properties": {"target": words, "message": words}})
    >>> _message(tool, "a1", "Go on.")
    ('send_input', {'target': 'a1', 'message': 'Go on.'})
    """
    schema = tool.schema or {}
    properties = schema.get("properties") or {}
    texts = [it for it in properties if "string" in kinds_of(properties[it])]
    words = next((it for it in _WORDS if it in texts), "")
    named = [it for it in texts if it != words and (_HANDLE.search(_snake(it)) or _RECIPIENT.search(it))]
    of_agents = _AGENTS.search(" ".join((tool.name, tool.description, *named)))
    if not (words and named and names_message(tool.name) and of_agents):
        return None
    return tool.name, filled(schema, {named[0]: handle, words: text})


def _handles(conversation: Conversation) -> Iterator[str]:
    """What the results of delegating calls name, the last one first."""
    begun = {call.id for said in conversation.messages for call in said.tool_calls if names_subagent(call.name)}
    for said in reversed(conversation.messages):
        for result in said.tool_results:
            if result.call_id in begun and (found := _handle_in(result.text)):
                yield found


def _handle_in(text: str) -> str:
    """The name of a subagent in the result of the call that began it; empty if there is none.

    >>> _handle_in('{"agent_id": "a1", "nickname": "Euler"}'), _handle_in("Launched. agentId: a2 (ask for it)")
    ('a1', 'a2')
    >>> _handle_in("The helper task_2 works in the background."), _handle_in("job-1 on gpt-5 began")
    ('task_2', '')
    """
    try:
        told = json.loads(text)
    except ValueError:
        told = None
    if isinstance(told, Mapping):
        named = (value for key, value in told.items() if _HANDLE.search(_snake(key)) and isinstance(value, str))
        return next(named, "")
    if found := _IN_TEXT.search(text):
        return found[1]
    words = set(_LOOKS_LIKE_ONE.findall(text))
    return words.pop() if len(words) == 1 else ""


def _snake(name: str) -> str:
    """`agentId` as `agent_id`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
