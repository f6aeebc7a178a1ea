"""Two tool calls cannot be told apart."""

from dataclasses import dataclass, replace

from wedgehog.fake_llm.reply import Answer, Reply, ToolCall
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("duplicate_ids", family="reply")
@dataclass(frozen=True, slots=True)
class DuplicateIds(ReplyFault):
    """All tool calls of the reply bear the id of its first; it takes a reply with two calls."""

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same calls under one id."""
        calls = [item for item in answer.items if isinstance(item, ToolCall)] if isinstance(answer, Reply) else []
        if not isinstance(answer, Reply) or not calls:
            return answer
        id_ = calls[0].id or "1"
        items = (replace(item, id=id_) if isinstance(item, ToolCall) else item for item in answer.items)
        return replace(answer, items=tuple(items)) if len(calls) > 1 else answer
