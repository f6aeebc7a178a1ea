"""The model will not."""

from dataclasses import dataclass, replace

from wedgehog.fake_llm.reply import Answer, Reply, Text
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("refusal", family="reply")
@dataclass(frozen=True, slots=True)
class ModelRefusal(ReplyFault):
    """The model refuses, with the provider's own stop reason, and says `text` instead of its answer."""

    text: str = "I'm sorry, but I can't help with that."

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """A refusal in place of the reply's items."""
        return replace(answer, items=(Text(self.text),), stop="refusal") if isinstance(answer, Reply) else answer
