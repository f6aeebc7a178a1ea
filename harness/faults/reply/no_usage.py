"""The provider does not say what it cost."""

from dataclasses import dataclass

from wedgehog.fake_llm.reply import Answer, NoUsage
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault, edited


@fault("no_usage", family="reply")
@dataclass(frozen=True, slots=True)
class UsageMissing(ReplyFault):
    """The reply says nothing of the tokens that it cost; it is billed all the same."""

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same reply, without usage."""
        return edited(answer, NoUsage())
