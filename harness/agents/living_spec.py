"""The keys of agents whose process stays: `lines`, `acp` and `tui`."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from wedgehog.harness.agents.output_source import OutputSource
from wedgehog.harness.agents.spec_part import Argv, PositiveSeconds, RegularExpression, Source, SpecPart
from wedgehog.harness.scenario.mistake import BadValueError

Signal = Literal["SIGINT", "SIGTERM", "SIGHUP"]
Fields = Annotated[dict[str, Any], Field(min_length=1)]
"""Paths in a JSON line, each with the value that stands there."""
LINE_SOURCES = ("stdout", "stderr", "jsonl", "joined")
"""Where an answer or an error can be read that came as lines."""


class PermissionQuestion(SpecPart):
    """How an agent asks its user whether it may run a tool, and what each answer is: keys, text, or a JSON value."""

    shows: RegularExpression | Fields
    """The line that asks: a pattern, or fields of a JSON line (only with `lines`)."""
    allow: Any
    deny: Any
    always: Any = None
    """The answer that allows it for ever, if there is one."""

    @property
    def answers(self) -> dict[str, Any]:
        """What is said for each kind of answer."""
        given = {"allow_once": self.allow, "allow_always": self.always, "reject_once": self.deny}
        return {kind: words for kind, words in given.items() if words is not None}


class LinesAgent(SpecPart):
    """An agent that stays, and talks in lines on its stdin and stdout: plain text, or one JSON value each."""

    start: Argv
    resume: Argv | None = None
    """Starts it again on the same session, after it has ended; default: `start`."""
    ready: RegularExpression | Fields | None = None
    """The line with which a new process says that it takes messages."""
    send: Any = "{message}"
    """The line of a message: text, or what is written as JSON."""
    done: RegularExpression | Fields
    """The line that ends a turn: a pattern, or fields of a JSON line. A pattern may be a prompt without a line end."""
    answer: Source = "stdout"
    answer_from: Fields | None = None
    """The lines that hold a part of the answer; default: all."""
    error: Source = "stderr"
    error_from: Fields | None = None
    """The lines that hold an error; default: all."""
    abort: Signal | Literal["EOF"] | dict[str, Any] = "SIGINT"
    """How its user stops a turn: by a signal, by the end of its stdin, or by a JSON line."""
    asks: PermissionQuestion | None = None
    """How it asks for permission. `jsonl:PATH` in an answer is a value of the line that asks."""

    @model_validator(mode="after")
    def _reads_lines(self) -> Self:
        for key in ("answer", "error"):
            if OutputSource.parse(getattr(self, key)).kind not in LINE_SOURCES:
                raise BadValueError("expected stdout, stderr, jsonl:PATH or joined:PATH", key)
        return self


class AcpAgent(SpecPart):
    """An agent that stays, and speaks the Agent Client Protocol on its stdin and stdout."""

    start: Argv
    auth: str | None = None
    """The id of the authentication method to choose, for an agent that asks for one."""
    mode: str | None = None
    """The id of the session mode to choose."""


class TuiAgent(SpecPart):
    """An agent that stays, with a screen and a keyboard: it runs in a terminal, and its screen is read."""

    start: Argv
    resume: Argv | None = None
    """Starts it again on the same session, after it has ended; default: `start`."""
    ready: RegularExpression
    """What the screen shows while it waits for a message; searched in each line."""
    busy: RegularExpression | None = None
    """What the screen shows while it works, for an agent whose prompt stays visible meanwhile."""
    quiet_s: PositiveSeconds = 1
    """Its screen stands still for this time before a turn counts as over; real seconds."""
    enter: str = "\r"
    """The key that sends a message."""
    abort: str = "\x03"
    """The key with which its user stops a turn: Ctrl-C, or "\\e" for Escape."""
    asks: PermissionQuestion | None = None
    """How it asks for permission; the answers are keys."""
    columns: Annotated[int, Field(ge=20, le=500)] = 120
    rows: Annotated[int, Field(ge=5, le=200)] = 40

    @model_validator(mode="after")
    def _answers_by_keys(self) -> Self:
        if self.asks is not None and not all(
            isinstance(it, str) for it in (self.asks.shows, *self.asks.answers.values())
        ):
            raise BadValueError("expected a pattern under `shows`, and keys as the answers", "asks")
        return self
