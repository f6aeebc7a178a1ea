"""Faults that change the events of a streamed reply at the trigger's event."""

from collections.abc import Callable
from dataclasses import astuple, replace
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from wedgehog.fake_llm import edit_kinds as edits
from wedgehog.fake_llm.edit_kinds import Edit
from wedgehog.fake_llm.reply import Answer, Failure, Reply
from wedgehog.harness.faults.base import Need, fault
from wedgehog.harness.faults.parameters import Positive
from wedgehog.harness.faults.reply_fault import NOTHING_SAID, Context, ReplyFault


class StreamEdit(ReplyFault):
    """One edit of the reply's stream; a failure has no stream to edit."""

    __slots__ = ()
    counts_events = True
    edit: ClassVar[Callable[..., Edit]]
    """Takes the trigger's event and the fault's parameters."""

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The same reply with one more edit."""
        if not isinstance(answer, Reply):
            return answer
        edit = type(self).edit(context.event or 0, *astuple(self))  # type: ignore[call-overload]
        return replace(answer, edits=(*answer.edits, edit))


@fault("duplicated_event", family="reply")
class DuplicatedEvent(StreamEdit):
    """The trigger's event comes twice; without one, the first event that delivers something."""

    unofficial: ClassVar[bool] = True
    edit = edits.Duplicated


@fault("reordered_events", family="reply")
class ReorderedEvents(StreamEdit):
    """The trigger's event comes after the next one; without one, the first event that delivers something."""

    unofficial: ClassVar[bool] = True
    edit = edits.Reordered


@fault("malformed_json", family="reply")
class MalformedJson(StreamEdit):
    """The JSON of the trigger's event, or of a reply in one piece, ends in the middle; the rest follows."""

    edit = edits.Malformed


@fault("early_end", family="reply")
class EndsEarly(StreamEdit):
    """The body ends *properly* after the trigger's event, without the terminal ones; SDKs take it for complete."""

    usual: ClassVar[int] = 1
    edit = edits.EarlyEnd
    ends_body = True
    needs = ("stream",)


@fault("error_event", family="reply")
class ErrorInStream(StreamEdit):
    """An error event comes inside the 200 stream at the trigger's event, and then the body ends properly.

    A request that asks for a reply in one piece, as an agent's fallback does, is refused with the same error. By a
    `gateway`, only on `openai-chat`, it is a chunk with a choice that ends with `finish_reason: error`, and the error
    beside it, as OpenRouter sends it.
    """

    usual: ClassVar[int] = 2
    status: Annotated[int, Field(ge=400, le=599, examples=[529, 500, 429])] = 529
    message: str | None = None
    by: Literal["provider", "gateway"] = "provider"
    undrawn = ("by",)
    edit = edits.ErrorEvent
    ends_body = True

    @property
    def needs(self) -> tuple[Need, ...]:
        """A gateway's chunk is one of chat completions."""
        return ("stream", "chat_chunks") if self.by == "gateway" else ("stream",)

    def on_answer(self, answer: Answer, context: Context) -> Answer:
        """The error in the stream, or in place of a whole reply."""
        in_one_piece = context.conversation is not NOTHING_SAID and not context.conversation.stream
        if in_one_piece and isinstance(answer, Reply):
            return Failure(self.status, message=self.message)
        return StreamEdit.on_answer(self, answer, context)


@fault("pings_only", family="reply")
class OnlyPings(StreamEdit):
    """After the trigger's event only keep-alive pings come, one every `every_s`, for ever: idle timers never fire."""

    every_s: Positive = 1.0
    without_threshold = ("every_s",)
    edit = edits.PingsOnly
    needs = ("stream",)


@fault("no_usage", family="reply")
class UsageMissing(StreamEdit):
    """The reply does not say how many tokens it used; it is billed as usual."""

    counts_events = False
    leaves_words = True
    unmet: ClassVar[str] = "the agent does not ask for the number of tokens, so no reply can lack it"
    edit = staticmethod(lambda event: edits.NoUsage())

    @property
    def for_some(self) -> bool:
        """A stream of chat completions tells the number only where the request asks for it."""
        return True


@fault("other_form", family="reply")
class OtherStreamForm(StreamEdit):
    """The stream says the same in another form that services of this wire use.

    `lines`: a comment first, no space behind a colon, CR LF at line ends, and an `id` field, as server-sent events
    allow. `fields`: on `openai-chat` a first chunk without choices, and fields that are null or empty in each chunk, as
    Azure and compatible services send them; elsewhere events of a type that is new. `turns`, only on `openai-chat`: the
    pieces of several tool calls come in turns, each with the index of its call.
    """

    counts_events = False
    leaves_words = True
    unofficial: ClassVar[bool] = True
    form: Literal["lines", "fields", "turns"] = "lines"
    edit = staticmethod(lambda event, form: edits.OtherForm(form))

    @property
    def needs(self) -> tuple[Need, ...]:
        """Its wire must have the form."""
        return "stream", "chat_chunks" if self.form == "turns" else "stream_form"


@fault("open_end", family="reply")
class OpenEndedStream(StreamEdit):
    """The stream ends with the text of its last event: no empty line, and on `openai-chat` no `[DONE]` follows.

    Some gateways send that. By the standard of server-sent events a reader drops such an event, as the Python SDKs of
    OpenAI and Anthropic do; others take it.
    """

    counts_events = False
    unofficial: ClassVar[bool] = True
    needs = ("stream", "stream_form")
    edit = staticmethod(lambda event: edits.OpenEnd())


@fault("misnumbered", family="reply")
class MisnumberedStream(StreamEdit):
    """The stream gives its parts wrong numbers, as some gateways do.

    `index`, only on `openai-chat`: each tool call has the index 0, and an id of its own. `ids`, only on
    `openai-responses`: each event has another id for its item, as GitHub Copilot sends them; those of an item's last
    event are right. `again`, on `openai-chat` and Anthropic's wire: each reply numbers the ids of its tool calls from
    0, as llama.cpp and Kimi do, so that two replies have the same ids; the provider accepts them in later requests.
    """

    counts_events = False
    misnumbers = True
    unofficial: ClassVar[bool] = True
    numbers: Literal["index", "ids", "again"] = "index"
    edit = staticmethod(lambda event, numbers: edits.Misnumbered(numbers))

    @property
    def needs(self) -> tuple[Need, ...]:
        """Its wire must have the number."""
        return "stream", _NEEDS[self.numbers]


_NEEDS: dict[str, Need] = {"index": "chat_chunks", "ids": "item_ids", "again": "call_ids"}
