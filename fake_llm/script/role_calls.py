"""What a scripted call by role becomes: a call of the agent's own tool."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wedgehog.fake_llm.conversation import Conversation, ToolSpec
from wedgehog.fake_llm.reply import UnscriptedError
from wedgehog.fake_llm.script.call_tokens import prompt_mark
from wedgehog.fake_llm.script.message_tool import SEND_MESSAGE, find_message_tool
from wedgehog.fake_llm.script.roles import (
    ASK_USER,
    FETCH,
    SHELL,
    SUBAGENT_TOOL,
    find_fetch,
    find_named,
    find_question,
    find_shell,
    find_subagent,
)
from wedgehog.fake_llm.script.structured import value_with
from wedgehog.fake_llm.script.subagent_results import OF_SUBAGENTS, call_for_begun

Called = tuple[str, dict[str, Any]]
"""A tool's name, and its arguments."""


def called_by_role(
    name: str,
    args: dict[str, Any],
    tools: Sequence[ToolSpec],
    conversation: Conversation,
    token: str,
    traced: Callable[[str], str],
) -> Called:
    """The agent's tool for a role, and its arguments; a name that is no role is that of a tool.

    `traced` returns a command that records its token. Errors: UnscriptedError, if there is no shell or no subagent.
    """
    if name == SHELL:
        return _shell(args, tools, traced)
    if name == SUBAGENT_TOOL:
        return _subagent(args, tools, conversation, token)
    if name in OF_SUBAGENTS:
        return _of_begun(name, tools, conversation, str(args.get("text", "")))
    named = find_named(tools, name)
    return _offered(name, args, tools) or ((named.name if named else name), args)


def _offered(name: str, args: Mapping[str, Any], tools: Sequence[ToolSpec]) -> Called | None:
    """A role whose name may be that of a tool too: then the arguments are others."""
    if name == FETCH and [*args] == ["url"] and (reader := find_fetch(tools)):
        return reader.name, reader.arguments(str(args["url"]))
    if name == ASK_USER and (asking := find_question(tools)):
        return asking.name, value_with(asking.schema or {}, str(args.get("question", "Which one?")), "question")
    if name == SEND_MESSAGE and [*args] == ["text"] and (sender := find_message_tool(tools)):
        return sender.name, sender.arguments(str(args["text"]))
    return None


def _shell(args: Mapping[str, Any], tools: Sequence[ToolSpec], traced: Callable[[str], str]) -> Called:
    tool = find_shell(tools)
    if tool is None:
        raise UnscriptedError("the script calls a shell and the agent advertises none")
    return tool.name, tool.arguments(traced(str(args.get("command", "true"))))


def _subagent(args: Mapping[str, Any], tools: Sequence[ToolSpec], conversation: Conversation, token: str) -> Called:
    tool = find_subagent(tools)
    if tool is None:
        raise UnscriptedError("the script calls a subagent and the agent advertises no tool for it")
    prompt = f"{prompt_mark(token)} {args.get('prompt', 'Look around.')}"
    return tool.name, tool.arguments(prompt, conversation.system, background=args.get("background") is True)


def _of_begun(role: str, tools: Sequence[ToolSpec], conversation: Conversation, text: str) -> Called:
    asked = call_for_begun(conversation, tools, role, text)
    if asked is None:
        raise UnscriptedError(f"the script asks for the {role} of a subagent, and there is no way to do that")
    return asked
