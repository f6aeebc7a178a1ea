"""Two events of the stream change places."""

from dataclasses import dataclass

from wedgehog.fake_llm.reply import Answer, Reordered
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault, edited


@fault("reordered_events", family="reply")
@dataclass(frozen=True, slots=True)
class ReorderedEvents(ReplyFault):
    """The trigger's event comes after the one that should follow it; without one, the first that delivers something."""

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same stream, in another order."""
        return edited(answer, Reordered(context.event or 0))
