"""The provider fails after it has said 200."""

from dataclasses import dataclass
from typing import Annotated

from wedgehog.fake_llm.reply import Answer, ErrorEvent
from wedgehog.harness.faults.base import Need, fault
from wedgehog.harness.faults.parameters import Range
from wedgehog.harness.faults.reply_fault import Context, ReplyFault, edited


@fault("error_event", family="reply")
@dataclass(frozen=True, slots=True)
class ErrorInStream(ReplyFault):
    """An error event comes inside the 200 stream at the trigger's event, and then the body ends properly."""

    status: Annotated[int, Range(400, 599)] = 529
    message: str | None = None

    @property
    def needs(self) -> tuple[Need, ...]:
        """Events, which only a streamed reply has."""
        return ("stream",)

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same stream, up to the trigger."""
        return edited(answer, ErrorEvent(context.event or 0, self.status, self.message))
