"""An example of a fault: the model calls a tool that the agent does not have."""

from dataclasses import replace

from wedgehog.fake_llm.reply import Answer, Item, Reply, ToolCall
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("renamed_tool", family="reply")
class RenamedTool(ReplyFault):
    """Every tool call of the reply asks for a tool whose name ends in `suffix`; the agent has no such tool."""

    suffix: str = "_v2"

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same reply with other names; a reply without tool calls stays as it is."""
        if not isinstance(answer, Reply):
            return answer
        return replace(answer, items=tuple(self._renamed(item) for item in answer.items))

    def _renamed(self, item: Item) -> Item:
        return replace(item, name=item.name + self.suffix) if isinstance(item, ToolCall) else item
