"""A script file: replies with conditions on the conversation, the first that fits is said.

replies:
  - {when: {user: weather, tool_results: 0}, reply: {tool: get_weather, args: {city: Paris}}}
  - {when: {user: /rate.?limit/}, error: {status: 429, retry_after: 2}}
  - {reply: {text: Hi there!}}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, NonNegativeInt, model_validator

from wedgehog.fake_llm.admin.balance import BalanceConfig
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Answer
from wedgehog.fake_llm.script.items import ConfigModel, ErrorConfig, ReplyConfig
from wedgehog.fake_llm.script.protocol import UnscriptedError

_SHOWN_CHARS = 80


def _readable(pattern: str) -> str:
    if _is_regex(pattern):
        try:
            re.compile(pattern[1:-1])
        except re.error as wrong:
            raise ValueError(f"expected a regular expression between the slashes: {wrong}") from wrong
    return pattern


Pattern = Annotated[str, AfterValidator(_readable)]


class When(ConfigModel):
    """What must hold of a conversation; a pattern is a substring in any case, or a /regular expression/.

    `user` looks at the last user message, `system` at all system text; `tool_results` counts the results since
    that user message; `wire` is the dialect's exact name.
    """

    user: Pattern | None = None
    system: Pattern | None = None
    model_name: Pattern | None = None
    wire: str | None = None
    tool_results: NonNegativeInt | None = None

    def fits(self, conversation: Conversation) -> bool:
        """Tell if all of it holds."""
        system = "\n".join(message.text for message in conversation.messages if message.role == "system")
        return (
            (self.user is None or _finds(self.user, last_user_text(conversation)))
            and (self.system is None or _finds(self.system, system))
            and (self.model_name is None or _finds(self.model_name, conversation.model))
            and self.wire in {None, conversation.wire}
            and self.tool_results in {None, results_since_user(conversation)}
        )


class ReplyLine(ConfigModel):
    """One entry of a script: `when` it fits, its `reply` or its `error`.

    `fault` is what whoever serves the script does to the bytes; the fake itself has no eyes for it.
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
        """Return what the line says: the same value each time, so that its bytes can be used again."""
        return self._answer

    @cached_property
    def _answer(self) -> Answer:
        if self.error is not None:
            return self.error.failure()
        assert self.reply is not None, "a line has one of both"  # noqa: S101
        return self.reply.reply()


class ScriptFile(ConfigModel):
    """A whole script file: what the model says, and what each session may spend."""

    replies: list[ReplyLine]
    balance: BalanceConfig | None = None


class WhenScript:
    """Answers by the first line whose conditions fit.

    >>> WhenScript.of({"replies": [{"reply": {"text": "Hi there!"}}]})  # doctest: +SKIP
    """

    def __init__(self, file: ScriptFile) -> None:
        """Answer as `file` says."""
        self.lines = tuple(file.replies)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read a script from plain data, as a YAML file gives it; raises pydantic's ValidationError."""
        return cls(ScriptFile.model_validate(document))

    def line(self, conversation: Conversation) -> ReplyLine:
        """Return the first line that fits, or raise Unscripted."""
        for line in self.lines:
            if line.when.fits(conversation):
                return line
        said, results = last_user_text(conversation), results_since_user(conversation)
        shown = said if len(said) <= _SHOWN_CHARS else f"{said[:_SHOWN_CHARS]}…"
        raise UnscriptedError(
            f"none of the script's {len(self.lines)} lines fits the last user message {shown!r} "
            f"with {results} tool results after it"
        )

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """Say what the first fitting line says."""
        return self.line(conversation).answer()


def last_user_text(conversation: Conversation) -> str:
    """Return the text of the last user message, "" where there is none."""
    users = (message.text for message in reversed(conversation.messages) if message.role == "user")
    return next(users, "")


def results_since_user(conversation: Conversation) -> int:
    """Count the tool results after the last user message."""
    count = 0
    for message in reversed(conversation.messages):
        if message.role == "user":
            break
        count += len(message.tool_results)
    return count


def _is_regex(pattern: str) -> bool:
    return len(pattern) > 2 and pattern[0] == pattern[-1] == "/"


def _finds(pattern: str, text: str) -> bool:
    if _is_regex(pattern):
        return re.search(pattern[1:-1], text) is not None
    return pattern.casefold() in text.casefold()
