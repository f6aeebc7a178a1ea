"""The body ends as if it were complete."""

from dataclasses import dataclass

from wedgehog.fake_llm.reply import Answer, EarlyEnd
from wedgehog.harness.faults.base import Need, fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault, edited


@fault("early_end", family="reply")
@dataclass(frozen=True, slots=True)
class EndsEarly(ReplyFault):
    """The body ends *properly* after the trigger's event, without the terminal ones; SDKs take it for complete."""

    @property
    def needs(self) -> tuple[Need, ...]:
        """Events, which only a streamed reply has."""
        return ("stream",)

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same stream, up to the trigger."""
        return edited(answer, EarlyEnd(context.event or 0))
