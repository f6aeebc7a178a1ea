"""A script by position: the model's answer depends on turn and step, never on a count of requests."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wedgehog.fake_llm.conversation import Conversation, ToolSpec
from wedgehog.fake_llm.reply import Answer, Item, Reply, Text, ToolCall, UnscriptedError
from wedgehog.fake_llm.script.call_tokens import note
from wedgehog.fake_llm.script.calls_in_text import CallsInText, in_quotes
from wedgehog.fake_llm.script.file_tools import file_action, tool_for
from wedgehog.fake_llm.script.misformed_calls import misformed
from wedgehog.fake_llm.script.position import CallPosition, Positions
from wedgehog.fake_llm.script.results_in_text import ResultFrame
from wedgehog.fake_llm.script.role_calls import called_by_role
from wedgehog.fake_llm.script.roles import (
    SHELL,
    SUBAGENT_TOOL,
    find_named,
    find_shell,
    find_subagent,
)
from wedgehog.fake_llm.script.schema_values import fill
from wedgehog.fake_llm.script.structured import structured
from wedgehog.fake_llm.script.subagent_results import OF_SUBAGENTS, call_for_begun

Beacon = Callable[[str, str], str]
"""(command, token) -> a command that also records the token."""


@dataclass(frozen=True)
class ScriptedTurn:
    """One turn's replies, from step 1 on, and the nonce that its answer must carry."""

    replies: tuple[Reply, ...]
    nonce: str
    only_offered: bool = False
    """Whether the last reply comes in the place of one that calls a tool which the request does not offer."""


@dataclass(frozen=True, slots=True)
class FinishCall:
    """The tool call by which an agent's model ends a turn: the argument `arg` is `text` with the last words in it.

    Without an argument the words are text before the call. Without a tool, `arg` is the property of a structured reply
    in which the words stand, and `text` is how a reply without a schema holds them. `chosen` has the values of other
    properties by name, in that call and in each structured reply.
    """

    tool: str
    arg: str
    text: str = "{answer}"
    chosen: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class TurnScript:
    """Answers with `turns` by position; background calls get a short valid answer.

    `values` replace `{name}` in the script's texts and arguments; `{nonce}` is the turn's nonce.
    """

    positions: Positions
    turns: Mapping[int, ScriptedTurn]
    values: Mapping[str, str] = field(default_factory=dict)
    beacon: Beacon = lambda command, token: command
    nonce_per_call: bool = False
    """Every reply gets its own nonce (see `nonce_of`), so that the answer identifies the call."""
    conversations: Mapping[str, tuple[Reply, ...]] = field(default_factory=dict)
    """The replies of declared conversations, by name."""
    finish: FinishCall | None = None
    """None: last words are text."""
    calls_in_text: CallsInText | None = None
    """None: tool calls are the wire's own."""
    _placed: dict[int, CallPosition] = field(default_factory=dict)

    def place(self, call: int, conversation: Conversation) -> CallPosition:
        """The position of request number `call`; the same each time."""
        if call not in self._placed:
            self._placed[call] = self.positions.place(conversation)
        return self._placed[call]

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """Return the reply at this request's position; raise UnscriptedError for a main call beyond the script."""
        place = self.place(call, conversation)
        if place.side is not None:
            return self._answered(self.beside(place, conversation), call, conversation)
        if place.background or place.turn == 0:
            return self.aside(call, conversation)
        turn = self.turns.get(place.turn)
        if turn is None or place.step > len(turn.replies):
            written = 0 if turn is None else len(turn.replies)
            raise UnscriptedError(
                f"turn {place.turn} step {place.step}: the script has {written} replies for this turn"
            )
        return self._answered(turn.replies[place.step - 1], call, conversation)

    def _answered(self, reply: Reply, call: int, conversation: Conversation) -> Reply:
        return self.written(self.direct(reply, call, conversation), conversation)

    def tools(self, conversation: Conversation) -> tuple[ToolSpec, ...]:
        """The tools that a request offers, or those that the model of this agent calls in its text."""
        if conversation.tools or self.calls_in_text is None or self.positions.is_at_limit(conversation):
            return conversation.tools
        return self.calls_in_text.tools

    def written(self, reply: Reply, conversation: Conversation) -> Reply:
        """The reply as it is sent: with its tool call in the text if the agent has them there."""
        if self.calls_in_text is None or conversation.tools:
            return reply
        written, results = self.calls_in_text.written(reply), self.positions.results_in_text
        frame = results.frame if results is not None else ResultFrame()
        return misformed(written, reply.call_form, frame, self._in_form)

    def _in_form(self, words: str) -> str:
        """Last words as the agent's model writes them in its text."""
        return words if self.finish is None or self.finish.tool else self.finish.text.replace("{answer}", words)

    def aside(self, call: int, conversation: Conversation) -> Reply:
        """The reply to a background call that belongs to no conversation: a few words by which it is recognized."""
        place, positions = self.place(call, conversation), self.positions
        chosen = self.finish.chosen if self.finish is not None else {}
        if place.turn == 0:
            return structured(Reply((Text("A short note"),)), conversation, chosen=chosen)
        positions.sides.answered(call, place.background, structured=conversation.schema is not None)
        positions.summed_up(call, place.background, conversation)
        words = f"A short note {note(positions.salt, call)}"
        return structured(Reply((Text(words),)), conversation, chosen=chosen)

    def beside(self, place: CallPosition, conversation: Conversation) -> Reply:
        """The scripted reply in a side conversation, or last words if it lacks a tool; after the script a few words."""
        replies = self.conversations.get(place.side.name, ()) if place.side is not None else ()
        if place.step <= len(replies):
            reply, tools = replies[place.step - 1], self.tools(conversation)
            return reply if _offers_roles(tools, reply) else _without_calls(reply)
        return Reply((Text("The task is done. {nonce}"),))

    def nonce_of(self, call: int) -> str:
        """The nonce in this request's reply; it begins with its turn's nonce."""
        place = self._placed[call]
        if place.side is not None:
            return note(self.positions.salt, call)
        nonce = self.turns[place.turn].nonce
        return f"{nonce}c{call}e" if self.nonce_per_call else nonce

    def direct(self, reply: Reply, call: int, conversation: Conversation) -> Reply:
        """A scripted reply with this request's tool names, ids and values."""
        reply = within_tools(reply, self.tools(conversation))
        place = self.place(call, conversation)
        values = {**self.values, "nonce": self.nonce_of(call)}
        count = 0
        items: list[Item] = []
        for item in reply.items:
            if isinstance(item, ToolCall):
                count += 1
                items.append(self._tool_call(item, place, count, conversation, values))
            else:
                items.append(replace(item, text=expand(item.text, values)))
        reply = self._finishing(replace(reply, items=tuple(items)), place, conversation)
        if self.finish is None:
            return structured(reply, conversation)
        shown = "" if self.finish.tool else self.finish.arg
        return structured(reply, conversation, shown, self.finish.chosen)

    def _finishing(self, reply: Reply, place: CallPosition, conversation: Conversation) -> Reply:
        """Last words as the call that ends the agent's turn, if this request offers that tool."""
        words, finish = spoken(reply), self.finish
        if finish is None or not words or reply.plain or reply.stop_reason != "end":
            return reply
        if not finish.tool:
            return _within(finish.text, words, reply) if conversation.schema is None else reply
        shell = find_shell(conversation.tools) if finish.tool == SHELL else None
        tool = find_named(conversation.tools, shell.name if shell else finish.tool)
        if tool is None:
            return reply
        schema = tool.schema or {}
        whole = {**schema, "type": "object", "required": schema.get("required", ())}
        filled = fill(whole, chosen=finish.chosen)
        args, said = filled, _within(finish.text, words, reply).items
        if finish.arg:
            args = {**filled, finish.arg: finish.text.replace("{answer}", words)}
            said = tuple(item for item in said if not isinstance(item, Text))
        token = self.positions.token_at(place, 1)
        return replace(reply, items=(*said, ToolCall(tool.name, args, f"{token}a{place.attempt}")))

    def _tool_call(
        self, item: ToolCall, place: CallPosition, count: int, conversation: Conversation, values: Mapping[str, str]
    ) -> ToolCall:
        token = self.positions.token_at(place, count)
        name, args, tools = item.name, expand_all(item.args, values), self.tools(conversation)
        if (action := file_action(name, args)) and (file_tool := tool_for(tools, action)):
            name, args = file_tool.name, file_tool.arguments(action, str(Path(values.get("cwd", ""), action.path)))
            return replace(item, name=name, args=args, id=f"{token}a{place.attempt}", file=action)

        def traced(command: str) -> str:
            # Where calls or results stand in texts, they are known by the traces alone.
            plain = item.untraced and self.positions.results_in_text is None and not self.positions.results_as_words
            return command if plain else self.beacon(command, token)

        name, args = called_by_role(name, args, tools, conversation, token, traced)
        return replace(item, name=name, args=args, id=f"{token}a{place.attempt}")


def _within(template: str, words: str, reply: Reply) -> Reply:
    """The reply whose text is the template around its words; in quotes they are written as in JSON."""
    if template == "{answer}":
        return reply
    before, _, after = template.partition("{answer}")
    said = in_quotes(words, before, after)
    pace_ms = next(item.pace_ms for item in reply.items if isinstance(item, Text))
    text = Text(before + said + after, pace_ms, span=(len(before), len(before) + len(said)))
    return replace(reply, items=(*(item for item in reply.items if not isinstance(item, Text)), text))


CLOSING = Text("That is all. {nonce}")
"""The last words where the script has none."""
HEARD = Text("I have heard of it. {nonce}")
"""The last words where the agent tells the model something after its answer, such as the end of a subagent."""


def offers(tools: Sequence[ToolSpec], reply: Reply, conversation: Conversation) -> bool:
    """Whether the reply calls only these tools, and each can be called in this conversation."""

    def found(call: ToolCall) -> object:
        if call.name in OF_SUBAGENTS:
            return call_for_begun(conversation, tools, call.name)
        if call.name == SUBAGENT_TOOL:
            return find_subagent(tools) or find_named(tools, call.name)
        if action := file_action(call.name, call.args):
            return tool_for(tools, action) or find_named(tools, call.name)
        return find_shell(tools) if call.name == SHELL else find_named(tools, call.name)

    return all(found(item) is not None for item in reply.items if isinstance(item, ToolCall))


def within_tools(reply: Reply, tools: Sequence[ToolSpec]) -> Reply:
    """The reply with last words in the place of its tool calls if there are no tools."""
    has_calls = any(isinstance(item, ToolCall) for item in reply.items)
    return _without_calls(reply) if has_calls and not tools else reply


def _offers_roles(tools: Sequence[ToolSpec], reply: Reply) -> bool:
    """Whether there are the shell, subagent and file tools that the reply calls, and any tool if it calls one."""
    calls = [item for item in reply.items if isinstance(item, ToolCall)]
    called = {call.name for call in calls}
    shell = SHELL not in called or find_shell(tools) is not None
    subagent = SUBAGENT_TOOL not in called or find_subagent(tools) is not None
    files = all(tool_for(tools, action) for call in calls if (action := file_action(call.name, call.args)))
    return shell and subagent and files and bool(tools or not called)


def _without_calls(reply: Reply) -> Reply:
    """The reply with last words in the place of its tool calls."""
    said = tuple(item for item in reply.items if not isinstance(item, ToolCall))
    return replace(reply, items=(*said, CLOSING), stop=None)


def spoken(reply: Reply) -> str:
    """The words of the reply's text."""
    return "".join(item.words for item in reply.items if isinstance(item, Text))


def text_of(reply: Reply) -> str:
    """The reply's text as it is sent."""
    return "".join(item.text for item in reply.items if isinstance(item, Text))


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace `{name}` for each known name; other braces stay."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def expand_all(value: Any, values: Mapping[str, str]) -> Any:
    """`expand` in every string of a JSON value."""
    if isinstance(value, str):
        return expand(value, values)
    if isinstance(value, Mapping):
        return {key: expand_all(inner, values) for key, inner in value.items()}
    if isinstance(value, Sequence):
        return [expand_all(inner, values) for inner in value]
    return value
