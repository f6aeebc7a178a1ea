"""The model never stops calling tools."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from wedgehog.fake_llm.reply import Answer, Reply, ToolCall
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault

# Parameters by which shell tools take their command.
COMMANDS = ("command", "cmd", "commands", "script")


@fault("endless_tools", family="reply")
class EndlessTools(ReplyFault):
    """The answer is a tool call again: the scripted one, else the last one of the conversation.

    `distinct` makes each shell command differ by a comment with the step's number, so that a loop detector
    finds no equal calls. Without any tool call to repeat the answer stays as it is.
    """

    on_script: ClassVar[bool] = True
    repeats_on_later_steps: ClassVar[bool] = True
    distinct: bool = True

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """One more call of the same tool, under a new id."""
        if not isinstance(answer, Reply):
            return answer
        scripted = [item for item in answer.items if isinstance(item, ToolCall)]
        call = scripted[0] if scripted else context.last_tool_call
        if call is None:
            return answer
        args = _distinct(call.args, context.step) if self.distinct else call.args
        return replace(answer, items=(replace(call, id="", args=args),), stop=None)


def _distinct(args: Mapping[str, Any], step: int) -> Mapping[str, Any]:
    key = next((name for name in COMMANDS if name in args), None)
    if key is None:
        return args
    value, mark = args[key], f" # {step}"
    if isinstance(value, list) and value:
        return {**args, key: [*value[:-1], f"{value[-1]}{mark}"]}
    return {**args, key: f"{value}{mark}"}
