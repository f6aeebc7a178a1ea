"""What the recorder asks the script: the place of a request, and the reply that was sent to it."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from wedgehog.fake_llm import observer as fact
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import FileAction, Reply, Text, ToolCall
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.fake_llm.script.results_in_text import COMMAND_BEGINS
from wedgehog.fake_llm.script.roles import names_question
from wedgehog.fake_llm.script.turns import spoken, text_of
from wedgehog.fake_llm.usage import carries_all, is_object, output_tokens
from wedgehog.harness.record.events.call import ToolCallOffered
from wedgehog.harness.record.events.files import FileCall


@dataclass(frozen=True, slots=True)
class SentReply:
    """A scripted reply as the fake provider sends it."""

    reply: Reply = field(default_factory=Reply)
    offers: Sequence[tuple[str, str, bool]] = ()
    """(turn.step.call, tool name, whole) of its tool calls."""
    tokens_needed: int = 0
    """The tokens of the whole reply, where the agent's own limit ended it."""
    last_words: str = ""
    """The words that a tool call of it carries, where that call ends the agent's turn (`finish:`)."""
    calls_in_text: tuple[ToolCall, ...] = ()
    """Its tool calls, where the model writes them in its text."""

    @property
    def words(self) -> str:
        """What the model says: its text, or the answer that a tool call carries."""
        return self.last_words or spoken(self.reply)

    @property
    def blocks(self) -> list[Text | ToolCall]:
        """Its texts and tool calls."""
        return [item for item in self.reply.items if isinstance(item, Text | ToolCall)]

    def text_within(self, tokens: int, ended: fact.WriteEnded, *, broken_off: bool) -> str:
        """The part of its text within these tokens; `broken_off`: there are more tokens than were written."""
        text = self.last_words or text_of(self.reply)
        in_all = max(ended.output_tokens, output_tokens(self.reply.items) if broken_off else 0)
        chars = len(text) if tokens >= in_all else len(text) * tokens // max(1, in_all)
        return text[:chars] if self.last_words else "".join(self._words_within(chars))

    def _words_within(self, chars: int) -> Iterator[str]:
        """The words in the first characters of its text."""
        for item in self.reply.items:
            if isinstance(item, Text):
                yield replace(item, text=item.text[:chars]).words
                chars -= min(chars, len(item.text))

    def offered(self, blocks: int) -> tuple[ToolCallOffered, ...]:
        """Its tool calls; those behind the last of the `blocks` that arrived whole were cut."""
        calls = [(index, item) for index, item in enumerate(self.blocks) if isinstance(item, ToolCall)]
        calls = [(0, call) for call in self.calls_in_text] or calls  # (one block has all of the text)
        offers = zip(calls, self.offers, strict=False)
        return tuple(
            _offered(call, token, name, whole=whole, arrived=place < blocks)
            for (place, call), (token, name, whole) in offers
        )


def _offered(call: ToolCall, token: str, name: str, *, whole: bool, arrived: bool) -> ToolCallOffered:
    """A tool call as the history has it; `arrived`: its block was delivered whole."""
    written = json.dumps(dict(call.args))
    traced = token in COMMAND_BEGINS.findall(written)
    return ToolCallOffered(
        token,
        name,
        whole and arrived,
        wrapped=arrived and call.raw_args is not None and carries_all(call),
        misfits=arrived and call.raw_args is not None and is_object(call.raw_args),
        asks_user=names_question(call.name),
        traced=traced,
        file=None if call.file is None else _file_call(call.file),
        digest="" if traced else hashlib.sha256(f"{call.name} {written}".encode()).hexdigest()[:8],
    )


def _file_call(action: FileAction) -> FileCall:
    return FileCall(action.role, action.path, action.content, action.old, action.new)


class Placing(Protocol):
    """What the recorder asks the script."""

    def place(self, call: int, conversation: Conversation) -> CallPosition:
        """The place of a request."""

    def read(self, conversation: Conversation) -> Conversation:
        """A request with the results of tools that stand in its text."""

    def token_of_result(self, call_id: str, text: str) -> str:
        """turn.step.call of the tool call that a result answers, or empty."""

    def tokens_in_text(self, conversation: Conversation) -> Sequence[str]:
        """turn.step.call of each tool call whose result is in a message's text."""

    def answered_in_text(self, conversation: Conversation) -> Sequence[str]:
        """turn.step.call of each quoted tool call with other words behind it, of an agent that sends results so."""

    def quotes(self, conversation: Conversation) -> tuple[int, ...]:
        """The calls of side conversations whose replies stand in the messages."""

    def replies_in(self, conversation: Conversation) -> tuple[int, ...]:
        """The calls whose reply's whole text stands in the messages."""

    def replies_begun(self, conversation: Conversation) -> tuple[int, ...]:
        """The calls whose reply's first words stand in the messages."""

    def replies_twice(self, conversation: Conversation) -> tuple[int, ...]:
        """The calls whose reply came once, and is the text of two messages of the model."""

    def sent(self, call: int) -> SentReply | None:
        """The scripted reply to a request; None if the script has none for it."""
