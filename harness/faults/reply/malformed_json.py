"""The provider writes half of a JSON object."""

from dataclasses import dataclass

from wedgehog.fake_llm.reply import Answer, Malformed
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault, edited


@fault("malformed_json", family="reply")
@dataclass(frozen=True, slots=True)
class MalformedJson(ReplyFault):
    """The JSON of the trigger's event, or of a reply in one piece, breaks off in the middle; the rest goes on."""

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same reply, with one object that cannot be read."""
        return edited(answer, Malformed(context.event or 0))
