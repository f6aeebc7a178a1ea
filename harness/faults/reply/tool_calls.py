"""Faults of the tool calls in a reply: their arguments, their names, their ids."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from wedgehog.fake_llm.reply import Answer, Reply, Text, ToolCall
from wedgehog.fake_llm.usage import arguments
from wedgehog.harness.faults.base import Need, fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault

COMMANDS = ("command", "cmd", "commands", "script")
"""Parameters by which shell tools take their command."""


class ToolCallsFault(ReplyFault):
    """Each tool call of the reply is changed; its other items stay."""

    __slots__ = ()
    needs_call: ClassVar[bool] = True

    @property
    def needs(self) -> tuple[Need, ...]:
        """The wire's own tool calls: text has no arguments in JSON, and no ids."""
        return ("calls",)

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same reply with changed tool calls."""
        if not isinstance(answer, Reply):
            return answer
        calls = [item for item in answer.items if isinstance(item, ToolCall)]
        items = (self.changed(it, calls, context) if isinstance(it, ToolCall) else it for it in answer.items)
        return replace(answer, items=tuple(items))

    def changed(self, call: ToolCall, calls: list[ToolCall], context: Context) -> ToolCall:
        """The faulty call; `calls` are all of the reply."""
        raise NotImplementedError


@fault("garbage_arguments", family="reply")
class GarbageArguments(ToolCallsFault):
    """Every tool call of the reply has arguments that are no JSON (`prose`, `fenced`, `unclosed`), or the wrong JSON.

    `unclosed` lacks the last character of the last text too: an agent that closes the JSON runs half a command.
    `list`: an array around them. `wrong_types`: numbers where texts belong. `none`: not a character, or an empty
    object on wires that carry only objects.
    """

    kind: Literal["prose", "fenced", "unclosed", "list", "wrong_types", "none"] = "prose"

    @property
    def breaks_arguments(self) -> bool:
        """`wrong_types` leaves a JSON object, and wires that carry only objects have an empty one for `none`."""
        return self.kind not in ("wrong_types", "none")

    def changed(self, call: ToolCall, calls: list[ToolCall], context: Context) -> ToolCall:
        """The same call with arguments that are sent verbatim."""
        return replace(call, raw_args=_GARBAGE[self.kind](call.args, arguments(call.args, None)))


_GARBAGE: dict[str, Callable[[Mapping[str, Any], str], str]] = {
    "prose": lambda args, text: f"I will call it with {', '.join(args) or 'nothing'} as you asked.",
    "fenced": lambda args, text: f"```json\n{text}\n```",
    "unclosed": lambda args, text: text[: max(1, text.rfind('"') - 1)],
    "list": lambda args, text: f"[{text}]",
    "wrong_types": lambda args, text: json.dumps(
        {name: 7 if isinstance(value, str) else str(value) for name, value in args.items()}
    ),
    "none": lambda args, text: "",
}


@fault("near_miss_tool", family="reply")
class NearMissTool(ToolCallsFault):
    """Every tool call of the reply misses its tool's name: by a letter, by case, by a suffix, or by `marks`.

    `marks`: those of a chat template stand behind the name, which some providers refuse in later requests. With
    `spares_first` the first call of the reply stays as it is.
    """

    undrawn: ClassVar[tuple[str, ...]] = ("spares_first",)

    by: Literal["letter", "case", "suffix", "marks"] = "letter"
    spares_first: bool = False

    def changed(self, call: ToolCall, calls: list[ToolCall], context: Context) -> ToolCall:
        """The same call of a tool that is not advertised."""
        if self.spares_first and call is calls[0]:
            return call
        miss = _MISSES[self.by](call.name)
        return replace(call, name=miss if miss and miss not in (*context.tools, call.name) else f"{call.name}_tool")


_MISSES: dict[str, Callable[[str], str]] = {
    "letter": lambda name: name[: len(name) // 2] + name[len(name) // 2 + 1 :],
    "case": str.swapcase,
    "suffix": lambda name: f"{name}_tool",
    "marks": lambda name: f"{name}<|channel|>commentary",
}


@fault("nameless_call", family="reply")
class NamelessCall(ToolCallsFault):
    """Every tool call of the reply has an empty name.

    Only gateways do that. So in such a run the provider accepts it in later requests, unless it `demands: names`.
    """

    unofficial: ClassVar[bool] = True

    def changed(self, call: ToolCall, calls: list[ToolCall], context: Context) -> ToolCall:
        """The same call without a name."""
        return replace(call, name="")


@fault("duplicate_ids", family="reply")
class DuplicateIds(ToolCallsFault):
    """All tool calls of the reply have the id of the first; the reply needs two calls.

    Only gateways do that. So in such a run the provider accepts equal ids in later requests.
    """

    unofficial: ClassVar[bool] = True

    def changed(self, call: ToolCall, calls: list[ToolCall], context: Context) -> ToolCall:
        """The same call under the first one's id."""
        return replace(call, id=calls[0].id or "1") if len(calls) > 1 else call


@fault("endless_tools", family="reply")
class EndlessTools(ReplyFault):
    """The answer is a tool call again: the scripted one, else the last one of the conversation.

    `distinct` makes each shell command differ by a comment with the step's number, so that a loop detector
    finds no equal calls. Without it the commands are equal to the letter: they have no beacon, and print the same.
    `says` is a text before each call. Without any tool call to repeat the answer stays as it is.
    """

    on_script: ClassVar[bool] = True
    repeats_on_later_steps: ClassVar[bool] = True
    needs_call: ClassVar[bool] = True
    distinct: Annotated[bool, Field(examples=[True, False])] = True
    says: Annotated[str, Field(examples=["", "I look once more."])] = ""

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """One more call of the same tool, under a new id."""
        if not isinstance(answer, Reply):
            return answer
        scripted = [item for item in answer.items if isinstance(item, ToolCall)]
        call = scripted[0] if scripted else context.last_tool_call
        if call is None:
            return answer
        args = _distinct(call.args, context.step) if self.distinct else call.args
        again = replace(call, id="", args=args, untraced=not self.distinct)
        words = (Text(self.says),) if self.says else ()
        return replace(answer, items=(*words, again), stop=None)


def _distinct(args: Mapping[str, Any], step: int) -> Mapping[str, Any]:
    key = next((name for name in COMMANDS if name in args), None)
    if key is None:
        return args
    value, mark = args[key], f" # {step}"
    if isinstance(value, list) and value:
        return {**args, key: [*value[:-1], f"{value[-1]}{mark}"]}
    return {**args, key: f"{value}{mark}"}
