"""A script file: replies with conditions on the conversation; the first line that fits is the answer.

replies:
  - {when: {user: weather, tool_results: 0}, reply: {tool: get_weather, args: {city: Paris}}}
  - {when: {user: /rate.?limit/}, error: {status: 429, retry_after: 2}}
  - {reply: {text: Hi there!}}
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, Protocol, Self, TypeAlias, TypeVar

from pydantic import AfterValidator, Field, NonNegativeInt, model_validator

from wedgehog.fake_llm.balance import BalanceConfig
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Answer, UnscriptedError
from wedgehog.fake_llm.script.items import ConfigModel, ErrorConfig, ReplyConfig
from wedgehog.fake_llm.script.openings import root_of
from wedgehog.fake_llm.script.side_conversations import SIDE, SUBAGENT

_SHOWN_CHARS = 80


def _readable(pattern: str) -> str:
    if is_regex(pattern):
        try:
            re.compile(pattern[1:-1])
        except re.error as wrong:
            raise ValueError(f"expected a regular expression between the slashes: {wrong}") from wrong
    return pattern


Pattern = Annotated[str, AfterValidator(_readable)]


class _Searched(str):
    """A text for many patterns."""

    @cached_property
    def folded(self) -> str:
        return self.casefold()


class Asked:
    """The values of a conversation that conditions test, computed once for all lines of a script."""

    def __init__(self, conversation: Conversation) -> None:
        """Compute the values that most conditions test."""
        self._conversation = conversation
        self.wire = conversation.wire
        users = (message.text for message in reversed(conversation.messages) if message.role == "user")
        self.user = _Searched(next(users, ""))

    @cached_property
    def system(self) -> _Searched:
        """All system text."""
        messages = self._conversation.messages
        return _Searched("\n".join([message.text for message in messages if message.role == "system"]))

    @cached_property
    def model(self) -> _Searched:
        """The model's name."""
        return _Searched(self._conversation.model)

    @cached_property
    def tool_results(self) -> int:
        """The number of tool results after the last user message."""
        count = 0
        for message in reversed(self._conversation.messages):
            if message.role == "user":
                break
            count += len(message.tool_results)
        return count


Test: TypeAlias = Callable[[Asked], bool]


class When(ConfigModel):
    """Conditions on a conversation; a pattern is a substring in any case, or a /regular expression/.

    `user` tests the last user message, `system` all system text; `tool_results` is the number of results after that
    user message; `wire` is the dialect's exact name.
    """

    user: Pattern | None = None
    system: Pattern | None = None
    model_name: Pattern | None = None
    wire: str | None = None
    tool_results: NonNegativeInt | None = None

    def tests(self) -> list[Test]:
        """Return a test for each condition."""
        patterns = {"user": self.user, "system": self.system, "model": self.model_name}
        tests = [_finder(pattern, name) for name, pattern in patterns.items() if pattern is not None]
        if self.wire is not None:
            tests.append(lambda asked: asked.wire == self.wire)
        if self.tool_results is not None:
            tests.append(lambda asked: asked.tool_results == self.tool_results)
        return tests


class ReplyLine(ConfigModel):
    """One entry of a script: `when` it fits, and its `reply` or its `error`.

    `fault` is what the server of the script does to the bytes; the fake provider itself ignores it.
    """

    when: When = Field(default_factory=When)
    reply: ReplyConfig | None = None
    error: ErrorConfig | None = None
    fault: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_answer(self) -> Self:
        if (self.reply is None) == (self.error is None):
            raise ValueError("expected either `reply` or `error`")
        return self

    def answer(self) -> Answer:
        """Return the line's answer: the same object each time, so that its bytes can be cached."""
        return self._answer

    @cached_property
    def _answer(self) -> Answer:
        if self.error is not None:
            return self.error.failure()
        assert self.reply is not None, "a line has a reply or an error"  # noqa: S101
        return self.reply.reply()


RESERVED = ("main", "background", "compaction", SUBAGENT, SIDE)


def _free(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"{name!r} has a meaning of its own: choose another name")
    return name


ConversationName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$"), AfterValidator(_free)]


class ConversationWhen(ConfigModel):
    """Which requests belong to it; all that is written must hold. Patterns are as in a script's `when`."""

    system: Pattern | None = None
    """In the system text."""
    opening: Pattern | None = None
    """In what the user says before the model's first reply."""
    tools: list[str] | None = None
    """All of them are advertised."""
    model_name: Pattern | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> "ConversationWhen":
        if not any(getattr(self, key) is not None for key in type(self).model_fields):
            raise ValueError("expected one of system, opening, tools and model_name")
        return self

    def holds(self, conversation: Conversation) -> bool:
        """Whether a request belongs to it."""
        texts = {"system": conversation.system, "opening": root_of(conversation), "model_name": conversation.model}
        named = {tool.name for tool in conversation.tools}
        return named.issuperset(self.tools or ()) and all(
            matches(pattern, text) for key, text in texts.items() if (pattern := getattr(self, key)) is not None
        )


def matches(pattern: str, text: str) -> bool:
    """Whether a text holds a substring in any case, or fits a /regular expression/."""
    if is_regex(pattern):
        return re.search(pattern[1:-1], text) is not None
    return pattern.casefold() in text.casefold()


class NamedConversation(Protocol):
    """A declared conversation."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def when(self) -> ConversationWhen:
        """Which requests belong to it."""


SomeConversation = TypeVar("SomeConversation", bound=NamedConversation)


def conversation_of(conversations: Sequence[SomeConversation], conversation: Conversation) -> SomeConversation | None:
    """The first one to which a request belongs."""
    return next((it for it in conversations if it.when.holds(conversation)), None)


class ScriptConversation(ConfigModel):
    """A conversation with lines of its own: the other lines are not for its requests."""

    name: ConversationName
    when: ConversationWhen
    replies: list[ReplyLine] = Field(min_length=1)


class ScriptFile(ConfigModel):
    """A script file: the model's replies, and what each session may spend."""

    replies: list[ReplyLine]
    conversations: list[ScriptConversation] = Field(default_factory=list)
    balance: BalanceConfig | None = None


class WhenScript:
    """Answers by the first line whose conditions fit.

    >>> WhenScript.of({"replies": [{"reply": {"text": "Hi there!"}}]})  # doctest: +SKIP
    """

    def __init__(self, file: ScriptFile) -> None:
        self.conversations = tuple(file.conversations)
        self.lines = tuple(file.replies)
        self._tests = _tested(file.replies)
        self._own = {it.name: _tested(it.replies) for it in file.conversations}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read a script from plain data, as a YAML file gives it; raises pydantic's ValidationError."""
        return cls(ScriptFile.model_validate(document))

    def name_of(self, conversation: Conversation) -> str:
        """The name of the conversation to which a request belongs; empty for none."""
        found = conversation_of(self.conversations, conversation) if self.conversations else None
        return found.name if found is not None else ""

    def line(self, conversation: Conversation) -> ReplyLine:
        """Return the first line that fits, or raise UnscriptedError."""
        asked, name = Asked(conversation), self.name_of(conversation)
        lines = self._own[name] if name else self._tests
        for line, tests in lines:
            for holds in tests:
                if not holds(asked):
                    break
            else:
                return line
        said = asked.user
        shown = said if len(said) <= _SHOWN_CHARS else f"{said[:_SHOWN_CHARS]}…"
        whose = f"the conversation {name}'s" if name else "the script's"
        raise UnscriptedError(
            f"none of {whose} {len(lines)} lines fits the last user message {shown!r} "
            f"with {asked.tool_results} tool results after it"
        )

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """Return the answer of the first line that fits."""
        return self.line(conversation).answer()


def _tested(lines: Sequence[ReplyLine]) -> list[tuple[ReplyLine, list[Test]]]:
    return [(line, line.when.tests()) for line in lines]


def is_regex(pattern: str) -> bool:
    """Whether a pattern stands between slashes."""
    return len(pattern) > 2 and pattern[0] == pattern[-1] == "/"


def _finder(pattern: str, name: str) -> Test:
    """Return a test for a pattern in the text of this name."""
    text = attrgetter(name)
    if is_regex(pattern):
        search = re.compile(pattern[1:-1]).search
        return lambda asked: search(text(asked)) is not None
    folded = pattern.casefold()
    return lambda asked: folded in text(asked).folded
