"""The model says nothing."""

from dataclasses import dataclass, replace

from wedgehog.fake_llm.reply import Answer, Reply
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("empty_reply", family="reply")
@dataclass(frozen=True, slots=True)
class EmptyReply(ReplyFault):
    """The model ends its turn without a word and without a call; the reply is complete, and paid."""

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same reply without its items."""
        return replace(answer, items=(), stop="end") if isinstance(answer, Reply) else answer
