"""The money is gone."""

from dataclasses import dataclass

from wedgehog.fake_llm.reply import BALANCE, Answer, Failure
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("balance", family="reply")
@dataclass(frozen=True, slots=True)
class BalanceUsedUp(ReplyFault):
    """The prepaid balance is used up: the request is refused with the status and in the words of its provider."""

    message: str | None = None

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """A refusal instead of the answer; each dialect knows its own status."""
        return Failure(402, message=self.message, kind=BALANCE)
