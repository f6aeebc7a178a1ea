"""The model calls a tool by almost its name."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from wedgehog.fake_llm.reply import Answer, Item, Reply, ToolCall
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("near_miss_tool", family="reply")
@dataclass(frozen=True, slots=True)
class NearMissTool(ReplyFault):
    """Every tool call of the reply misses its tool's name: by a letter, by case, or by a suffix."""

    by: Literal["letter", "case", "suffix"] = "letter"

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same calls of tools that nobody advertised."""
        if not isinstance(answer, Reply):
            return answer
        return replace(answer, items=tuple(self._missed(item, context.tools) for item in answer.items))

    def _missed(self, item: Item, tools: tuple[str, ...]) -> Item:
        if not isinstance(item, ToolCall):
            return item
        miss = _MISSES[self.by](item.name)
        return replace(item, name=miss if miss and miss not in (*tools, item.name) else f"{item.name}_tool")


_MISSES: dict[str, Callable[[str], str]] = {
    "letter": lambda name: name[: len(name) // 2] + name[len(name) // 2 + 1 :],
    "case": str.swapcase,
    "suffix": lambda name: f"{name}_tool",
}
