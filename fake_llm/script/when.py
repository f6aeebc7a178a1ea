"""A script file: replies with conditions on the conversation; the first line that fits is the answer.

replies:
  - {when: {user: weather, tool_results: 0}, reply: {tool: get_weather, args: {city: Paris}}}
  - {when: {user: /rate.?limit/}, error: {status: 429, retry_after: 2}}
  - {reply: {text: Hi there!}}
"""

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from operator import attrgetter
from typing import Annotated, Any, Self, TypeAlias

from pydantic import AfterValidator, Field, NonNegativeInt, model_validator

from wedgehog.fake_llm.admin.balance import BalanceConfig
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Answer, UnscriptedError
from wedgehog.fake_llm.script.items import ConfigModel, ErrorConfig, ReplyConfig

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


class ScriptFile(ConfigModel):
    """A script file: the model's replies, and what each session may spend."""

    replies: list[ReplyLine]
    balance: BalanceConfig | None = None


class WhenScript:
    """Answers by the first line whose conditions fit.

    >>> WhenScript.of({"replies": [{"reply": {"text": "Hi there!"}}]})  # doctest: +SKIP
    """

    def __init__(self, file: ScriptFile) -> None:
        """Answer with the lines of `file`."""
        self.lines = tuple(file.replies)
        self._tests = [(line, line.when.tests()) for line in self.lines]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read a script from plain data, as a YAML file gives it; raises pydantic's ValidationError."""
        return cls(ScriptFile.model_validate(document))

    def line(self, conversation: Conversation) -> ReplyLine:
        """Return the first line that fits, or raise UnscriptedError."""
        asked = Asked(conversation)
        for line, tests in self._tests:
            for holds in tests:
                if not holds(asked):
                    break
            else:
                return line
        said = asked.user
        shown = said if len(said) <= _SHOWN_CHARS else f"{said[:_SHOWN_CHARS]}…"
        raise UnscriptedError(
            f"none of the script's {len(self.lines)} lines fits the last user message {shown!r} "
            f"with {asked.tool_results} tool results after it"
        )

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """Return the answer of the first line that fits."""
        return self.line(conversation).answer()


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
