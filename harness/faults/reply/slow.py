"""The model thinks for long."""

from dataclasses import dataclass, replace

from wedgehog.fake_llm.reply import Answer
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.parameters import Seconds
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("slow", family="reply")
@dataclass(frozen=True, slots=True)
class Slow(ReplyFault):
    """The first byte comes `s` seconds late, and `s_per_kb` later still for every 1,024 bytes of the request."""

    s: Seconds = 0.0
    s_per_kb: Seconds = 0.0

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same answer, later."""
        late = self.s + self.s_per_kb * context.request_bytes / 1024
        return replace(answer, delay_s=answer.delay_s + late)
