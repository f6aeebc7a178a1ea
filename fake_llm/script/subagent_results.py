"""The role `subagent_result`: the model asks for what a subagent in the background has to say."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from wedgehog.fake_llm.conversation import Conversation, ToolSpec
from wedgehog.fake_llm.script.roles import names_subagent, names_wait, value_for

_HANDLE = re.compile(r"^(?:(?:sub_?)?agent|task|job|run|thread|session)?_?(?:ids?|names?|keys?|handles?|targets?)$")
"""A parameter, or a property of a result, that says which subagent is meant."""
_IN_TEXT = re.compile(
    r"(?:agent|task|job|run|thread|session)[ _-]?(?:id|name|key|handle)\W{1,4}([\w./:-]*\w)", re.IGNORECASE
)
_LOOKS_LIKE_ONE = re.compile(r"\b(?=[\w-]*\d)[A-Za-z]+[_-][\w-]*\w")
"""A word such as `task_2` or `bg-17`. Of two it is not known which one is meant."""


def asks_for_result(conversation: Conversation, tools: Sequence[ToolSpec]) -> tuple[str, dict[str, Any]] | None:
    """The tool that waits for a subagent or reads its result, and its arguments for the one that was begun last.

    None if there is no such tool, or the result of the call that began it does not say its name.
    """
    handle = next(_handles(conversation), "")
    for tool in tools if handle else ():
        properties = (tool.schema or {}).get("properties") or {}
        name = next((it for it in properties if _HANDLE.search(_snake(it))), "")
        if name and names_wait(tool.name) and (value := value_for(tool.schema or {}, name, handle)) is not None:
            return tool.name, value
    return None


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
