"""Faults that give another answer in place of the scripted one, or give it later."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from wedgehog.fake_llm.reply import BALANCE, Answer, Failure, Reply, Text
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.parameters import FaultError, Seconds
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("balance", family="reply")
class BalanceUsedUp(ReplyFault):
    """The prepaid balance is used up: the request is refused with its provider's status and message."""

    message: str | None = None

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """A refusal; each dialect replaces the status with its own."""
        return Failure(402, message=self.message, kind=BALANCE)


@fault("html_body", family="reply")
class HtmlBody(ReplyFault):
    """The request is answered with an HTML page instead of JSON, as a gateway or a login page does; nothing is paid."""

    code: Annotated[int, Field(ge=200, le=599)] = 200
    message: str | None = None

    def __post_init__(self) -> None:
        """Refuse a status whose replies have no body."""
        ReplyFault.__post_init__(self)
        if self.code in (204, 205, 304):
            raise FaultError(f"html_body: a reply with status {self.code} has no body")

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """An HTML page."""
        return Failure(self.code, message=self.message, html=True)


@fault("refusal", family="reply")
class ModelRefusal(ReplyFault):
    """The model refuses, with the provider's own stop reason, and says `text` instead of its answer."""

    text: str = "I'm sorry, but I can't help with that."

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """A refusal in place of the reply's items."""
        return replace(answer, items=(Text(self.text),), stop="refusal") if isinstance(answer, Reply) else answer


@fault("empty_reply", family="reply")
class EmptyReply(ReplyFault):
    """The model ends its turn without text and without a tool call; the reply is complete, and paid."""

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same reply without its items."""
        return replace(answer, items=(), stop="end") if isinstance(answer, Reply) else answer


@fault("slow", family="reply")
class Slow(ReplyFault):
    """The first byte comes `s` seconds late, and `s_per_kb` seconds later for every 1,024 bytes of the request."""

    s: Seconds = 0.0
    s_per_kb: Seconds = 0.0

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same answer, later."""
        late = self.s + self.s_per_kb * context.request_bytes / 1024
        return replace(answer, delay_s=answer.delay_s + late)
