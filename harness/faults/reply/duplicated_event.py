"""One event of the stream comes twice."""

from dataclasses import dataclass

from wedgehog.fake_llm.reply import Answer, Duplicated
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault, edited


@fault("duplicated_event", family="reply")
@dataclass(frozen=True, slots=True)
class DuplicatedEvent(ReplyFault):
    """The trigger's event comes twice; without one, the first that delivers something."""

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same stream, with one event more."""
        return edited(answer, Duplicated(context.event or 0))
