"""Faults that give another answer in place of the scripted one, or give it later."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field

from wedgehog.fake_llm.reply import BALANCE, Answer, ErrorForm, Failure, Item, Reply, Stop, Text, ToolCall
from wedgehog.fake_llm.usage import arguments, cut
from wedgehog.harness.faults.base import Need, fault
from wedgehog.harness.faults.parameters import FaultError, Seconds, shorter_whole_s
from wedgehog.harness.faults.reply_fault import Context, ReplyFault

DATE = "date:"


STATUSES = [429, 500, 503, 529, 400, 401, 403, 404, 408, 413, 502, 504]
"""What providers and the gateways before them answer."""


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

    code: Annotated[int, Field(ge=200, le=599, examples=[200, 403, 502, 503])] = 200
    message: str | None = None

    def __post_init__(self) -> None:
        """Refuse a status whose replies have no body."""
        ReplyFault.__post_init__(self)
        if self.code in (204, 205, 304):
            raise FaultError(f"html_body: a reply with status {self.code} has no body")

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """An HTML page."""
        return Failure(self.code, message=self.message, html=True)


@fault("error_body", family="reply")
class ErrorBody(ReplyFault):
    """The request is answered with status 200 and an error as its JSON body, as some gateways do; nothing is paid.

    The error has the provider's shape and words, and `code` is its own status.
    """

    unofficial: ClassVar[bool] = True
    code: Annotated[int, Field(ge=400, le=599, examples=STATUSES)] = 429
    message: str | None = None

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """An error that looks like a success."""
        return Failure(self.code, message=self.message, as_success=True)


@fault("refusal", family="reply")
class ModelRefusal(ReplyFault):
    """The model refuses, with the provider's own stop reason, and says `text` instead of its answer."""

    text: str = "I'm sorry, but I can't help with that."

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """A refusal in place of the reply's items."""
        return replace(answer, items=(Text(self.text),), stop="refusal") if isinstance(answer, Reply) else answer


_NEEDS: Mapping[str, tuple[Need, ...]] = {"no_choice": ("choices",), "broken_call": ("broken_calls",)}


@fault("empty_reply", family="reply")
class EmptyReply(ReplyFault):
    """The model ends its turn without text and without a tool call; the reply is complete, and paid.

    `no_choice`: on `openai-chat` its list of choices is empty, as gateways send it after a filter. On `gemini` it has
    no candidates, but a reason why the prompt was blocked. `broken_call`, only on `gemini`: it ends for a tool call
    that the provider could not read (`MALFORMED_FUNCTION_CALL`).
    """

    says_nothing: ClassVar[bool] = True
    form: Literal["plain", "no_choice", "broken_call"] = "plain"
    undrawn = ("form",)

    @property
    def needs(self) -> tuple[Need, ...]:
        """Its wire must have such a list, or say so."""
        return _NEEDS.get(self.form, ())

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same reply without its items."""
        if not isinstance(answer, Reply):
            return answer
        no_choice, broken = self.form == "no_choice", self.form == "broken_call"
        stop: Stop = "filter" if no_choice else "end"
        return replace(answer, items=(), stop=stop, no_choice=no_choice, broken_call=broken)


@fault("tool_instead", family="reply")
class ToolInstead(ReplyFault):
    """The model calls a tool in place of words: the first tool that the request offers, else one that it does not.

    It fires at `on: compaction` and `on: background`, where an agent asks for a summary or a title and runs no tools.
    """

    beside_the_main: ClassVar[bool] = True

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """One call without arguments, and no text."""
        call = ToolCall(next(iter(context.tools), "bash"), {})
        return replace(answer, items=(call,), stop=None) if isinstance(answer, Reply) else answer


@fault("slow", family="reply")
class Slow(ReplyFault):
    """The first byte comes `s` seconds late, and `s_per_kb` seconds later for every 1,024 bytes of the request."""

    s: Seconds = 0.0
    s_per_kb: Seconds = 0.0

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same answer, later."""
        late = self.s + self.s_per_kb * context.request_bytes / 1024
        return replace(answer, delay_s=answer.delay_s + late)


@fault("status", family="reply")
class StatusReply(ReplyFault):
    """The request is answered with an HTTP error, in the provider's own shape; nothing is paid.

    `retry_after` is seconds, or `date:SECONDS` for an HTTP date that far ahead. The header holds whole seconds,
    so a shortened one is rounded up. Local servers and gateways have other forms than the `provider`: plain `text`,
    `string` (`{"error": "…"}`), `detail` (`{"detail": "…"}`), or a `list` with the provider's own object.
    """

    usual: ClassVar[int] = 7
    code: Annotated[int, Field(ge=400, le=599, examples=STATUSES)]
    retry_after: Seconds | str | None = None
    message: str | None = None
    form: ErrorForm = "provider"
    undrawn = ("form",)

    def __post_init__(self) -> None:
        """Refuse a `retry_after` that is neither seconds nor `date:SECONDS`."""
        ReplyFault.__post_init__(self)
        if isinstance(self.retry_after, str):
            _seconds_ahead(self.retry_after)

    def scaled(self, factor: float) -> Self:
        """Shorten `retry_after`, in both forms, to whole seconds."""
        wait = self.retry_after
        if isinstance(wait, str):
            return replace(self, retry_after=f"{DATE}{shorter_whole_s(_seconds_ahead(wait), factor)}")
        return self if wait is None else replace(self, retry_after=shorter_whole_s(wait, factor))

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """A failure instead of the answer."""
        wait: float | str | None = self.retry_after
        if isinstance(wait, str):
            ahead = timedelta(seconds=_seconds_ahead(wait))
            wait = format_datetime(context.now + ahead, usegmt=True)
        return Failure(self.code, message=self.message, retry_after=wait, form=self.form)


def _seconds_ahead(text: str) -> float:
    try:
        seconds = float(text.removeprefix(DATE)) if text.startswith(DATE) else -1.0
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < math.inf:
        raise FaultError(f"status: retry_after must be seconds or date:SECONDS, not {text!r}")
    return seconds


@fault("max_tokens", family="reply")
class MaxTokens(ReplyFault):
    """The reply stops at its token limit after `chars` characters of the first tool call's argument, or of the text.

    Characters count as in the script, also inside of JSON by a schema. Items before that tool call stay whole, later
    ones are lost. At least one character is always lost.
    """

    stop: ClassVar[Stop] = "max_tokens"
    chars: Annotated[int, Field(ge=0, examples=[20, 0, 5])] = 20

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same reply, stopped in the middle."""
        if not isinstance(answer, Reply) or not answer.items:
            return answer
        at = next((i for i, item in enumerate(answer.items) if isinstance(item, ToolCall)), None)
        if at is None:
            return replace(answer, items=_cut_text(answer.items, self.chars), stop=self.stop)
        return replace(answer, items=_cut_call(answer.items, at, self.chars, context.lead), stop=self.stop)


@fault("content_filter", family="reply")
class ContentFilter(MaxTokens):
    """A filter of the provider stops the reply after `chars` characters, with a stop reason of its own; it is paid.

    What has come is cut as by `max_tokens`, and the reason is `content_filter`, on Anthropic's wire `refusal`, and on
    `gemini` `SAFETY`. Ollama has none.
    """

    stop: ClassVar[Stop] = "filter"
    needs = ("filters",)


def _cut_call(items: tuple[Item, ...], at: int, chars: int, lead: str) -> tuple[Item, ...]:
    call = items[at]
    if not isinstance(call, ToolCall):
        raise TypeError(f"item {at} is no tool call")
    ours = json.dumps(lead, ensure_ascii=False)[1:-1]
    unwritten = len(ours) if -1 < arguments(call.args, call.raw_args).find(ours) < chars else 0
    return *items[:at], cut(call, chars + unwritten)


def _cut_text(items: tuple[Item, ...], chars: int) -> tuple[Item, ...]:
    kept: list[Item] = []
    for item in items:
        if not isinstance(item, Text):
            kept.append(item)
        elif chars < len(item.words) or item is items[-1]:
            return *kept, cut(item, chars + (item.span[0] if item.span else 0))
        else:
            kept.append(item)
            chars -= len(item.words)
    return tuple(kept)
