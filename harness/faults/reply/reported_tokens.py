"""A provider that counts many tokens in each request, also behind a summary."""

from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field

from wedgehog.fake_llm.reply import Answer, Reply, Usage
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.reply_fault import Context, ReplyFault


@fault("reported_tokens", family="reply")
class ReportedTokens(ReplyFault):
    """The reply reports `tokens` input tokens, whatever its request holds, also where a summary has made it shorter.

    So it is where the system text, the tools or one long message fill the window, and not what was said before.
    """

    tokens: Annotated[int, Field(ge=1, examples=[985_000])]
    leaves_words: ClassVar[bool] = True
    repeats_on_later_steps: ClassVar[bool] = True

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same answer, with this number of tokens."""
        if not isinstance(answer, Reply):
            return answer
        return replace(answer, usage=Usage(self.tokens, answer.usage.output_tokens if answer.usage else None))
