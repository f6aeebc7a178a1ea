"""A model whose context window is as large as the scenario says: what is longer is refused, or cut in silence."""

from dataclasses import replace
from typing import Annotated, ClassVar

from pydantic import Field

from wedgehog.fake_llm.reply import Answer, Failure, Overflow, Reply, Usage
from wedgehog.fake_llm.usage import input_tokens
from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.parameters import FaultError
from wedgehog.harness.faults.reply_fault import Context, ReplyFault

TOO_LONG = 400
CUTS_IN_SILENCE = ("ollama", "openai-realtime")
"""Wires whose provider drops the beginning of a request that is too long, and answers the rest."""


@fault("window", family="reply")
class Window(ReplyFault):
    """The model's window has room for `tokens` tokens, or for `more` tokens than the first request that it meets.

    If a request offers tools, the first one with tools counts: a request before it may have asked for a title.

    A longer request is refused with 400 and the provider's own words, which name the window's size. Ollama and OpenAI's
    Realtime API refuse nothing: they drop the beginning, answer the rest, and count only that. Tokens are estimated
    from the characters of messages and tools, four each. Nothing heals it: later turns, summaries and side
    conversations have the same window.
    """

    tokens: Annotated[int, Field(ge=1)] | None = None
    more: Annotated[int, Field(ge=1)] | None = None
    lasts: ClassVar[bool] = True
    for_some = True
    unmet: ClassVar[str] = "no request was longer than the window: the agent keeps its conversation short"

    def __post_init__(self) -> None:
        ReplyFault.__post_init__(self)
        if (self.tokens is None) == (self.more is None):
            raise FaultError("window: expected either `tokens` or `more`, such as {window: {more: 3000}}")

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """A refusal, if the request is longer than the window."""
        asked, room = input_tokens(context.conversation), self._room(context)
        if asked <= room:
            return answer
        if context.conversation.wire in CUTS_IN_SILENCE:
            return _cut(answer, room)
        return Failure(TOO_LONG, overflow=Overflow(asked, room))

    def _room(self, context: Context) -> int:
        if self.tokens is not None:
            return self.tokens
        size = str(input_tokens(context.conversation))
        first = context.kept.setdefault("first", size)
        if context.conversation.tools:
            context.kept.setdefault("first with tools", size)
        return int(context.kept.get("first with tools", first)) + (self.more or 0)


def _cut(answer: Answer, room: int) -> Answer:
    """The same answer, billed for what the model has read."""
    if not isinstance(answer, Reply):
        return answer
    return replace(answer, usage=Usage(room, answer.usage.output_tokens if answer.usage else None))
