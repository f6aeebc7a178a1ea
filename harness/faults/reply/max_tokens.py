"""The model reaches its output limit."""

import json
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from wedgehog.fake_llm.reply import Answer, Item, Reply, Text, ToolCall
from wedgehog.fake_llm.usage import arguments, cut
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("max_tokens", family="reply")
class MaxTokens(ReplyFault):
    """The reply stops at its token limit after `chars` characters of the first tool call's argument, or of the text.

    Characters of the argument count as in the script. Items before that tool call stay whole, later ones are lost. At
    least one character is always lost.
    """

    chars: Annotated[int, Field(ge=0)] = 20

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same reply, stopped in the middle."""
        if not isinstance(answer, Reply) or not answer.items:
            return answer
        at = next((i for i, item in enumerate(answer.items) if isinstance(item, ToolCall)), None)
        if at is None:
            return replace(answer, items=_cut_text(answer.items, self.chars), stop="max_tokens")
        return replace(answer, items=_cut_call(answer.items, at, self.chars, context.lead), stop="max_tokens")


def _cut_call(items: tuple[Item, ...], at: int, chars: int, lead: str) -> tuple[Item, ...]:
    call = items[at]
    if not isinstance(call, ToolCall):
        raise TypeError(f"item {at} is no tool call")
    ours = json.dumps(lead, ensure_ascii=False)[1:-1]
    unwritten = len(ours) if -1 < arguments(call.args, call.raw_args).find(ours) < chars else 0
    return *items[:at], cut(call, chars + unwritten)


def _cut_text(items: tuple[Item, ...], chars: int) -> tuple[Item, ...]:
    kept: list[Item] = []
    for item in items:
        if not isinstance(item, Text):
            kept.append(item)
        elif chars < len(item.text) or item is items[-1]:
            return *kept, cut(item, chars)
        else:
            kept.append(item)
            chars -= len(item.text)
    return tuple(kept)
