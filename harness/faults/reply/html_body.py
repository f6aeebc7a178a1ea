"""A gateway answers in the provider's place."""

from dataclasses import dataclass
from typing import Annotated

from wedgehog.fake_llm.reply import Answer, Failure
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.parameters import Range
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("html_body", family="reply")
@dataclass(frozen=True, slots=True)
class HtmlBody(ReplyFault):
    """The request is answered with an HTML page instead of JSON, as a gateway or a login page does; nothing is paid."""

    code: Annotated[int, Range(200, 599)] = 200
    message: str | None = None

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """A page instead of the answer."""
        return Failure(self.code, message=self.message, html=True)
