"""The stream lives and says nothing."""

from dataclasses import dataclass

from wedgehog.fake_llm.reply import Answer, PingsOnly
from wedgehog.harness.faults.base import Need, fault
from wedgehog.harness.faults.parameters import Positive
from wedgehog.harness.faults.reply_fault import Context, ReplyFault, edited


@fault("pings_only", family="reply")
@dataclass(frozen=True, slots=True)
class OnlyPings(ReplyFault):
    """After the trigger's event only keep-alive pings come, one every `every_s`, for ever: idle timers never fire."""

    every_s: Positive = 1.0

    @property
    def needs(self) -> tuple[Need, ...]:
        """Events, which only a streamed reply has."""
        return ("stream",)

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same stream, up to the trigger, then pings."""
        return edited(answer, PingsOnly(context.event or 0, self.every_s))
