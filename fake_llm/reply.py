"""What the model says, as plain values on one event line; each dialect puts them into its own bytes.

>>> Reply((Text("Let me look."), ToolCall("shell", {"command": "ls"})))  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

Stop = Literal["end", "tool", "max_tokens", "refusal"]
BALANCE: Final = "balance"


@dataclass(frozen=True, slots=True)
class Text:
    """Words for the user; a streamed piece comes every `pace_ms` (0: all at once)."""

    text: str
    pace_ms: float = 0


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning; dialects whose provider keeps it to itself bill its tokens and show nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of one of the agent's tools.

    `id` is the part of the id that comes after the provider's prefix ("1x2" becomes `toolu_1x2`, `call_1x2`);
    empty: the fake makes one up. `raw_args` is sent verbatim instead of `args`, also where it is not JSON.
    """

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    raw_args: str | None = None


Item: TypeAlias = Text | Thinking | ToolCall


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that the provider reports; None is estimated from the characters."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class EarlyEnd:
    """The body ends *properly* after event `event`, without what should have followed."""

    event: int


@dataclass(frozen=True, slots=True)
class PingsOnly:
    """After event `event` only keep-alive pings come, one every `every_s`, for ever."""

    event: int
    every_s: float = 1.0


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """After event `event` an error event comes inside the 200 stream, then a proper end."""

    event: int
    status: int = 529
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Duplicated:
    """Event `event` comes twice; 0 is the first one that delivers something."""

    event: int = 0


@dataclass(frozen=True, slots=True)
class Reordered:
    """Event `event` comes after the one that should follow it; 0 is the first one that delivers something."""

    event: int = 0


@dataclass(frozen=True, slots=True)
class Malformed:
    """The JSON of event `event` breaks off in the middle; 0 is the first one that delivers something.

    Of a reply that is not streamed it is the body's.
    """

    event: int = 0


@dataclass(frozen=True, slots=True)
class NoUsage:
    """The provider does not say what the reply cost, streamed or not."""


Edit: TypeAlias = EarlyEnd | PingsOnly | ErrorEvent | Duplicated | Reordered | Malformed | NoUsage


@dataclass(frozen=True, slots=True)
class Reply:
    """An accepted request's answer. `delay_s` passes before the first byte; most edits apply to streams alone.

    `stop` is derived from the items where it is None: "tool" if one is a call, else "end".
    """

    items: tuple[Item, ...] = ()
    usage: Usage | None = None
    stop: Stop | None = None
    delay_s: float = 0
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """The provider refuses or fails, in its own shape; `kind` and `message` default to what it says at `status`.

    The kind BALANCE is a prepaid balance that is used up, with the status and in the words of each provider. `html` is
    a page of whatever stands before the provider, with any status, instead of the provider's own shape. `retry_after`
    is the header's value: seconds, a text sent as it is, or "date:SECONDS" for an HTTP date that many seconds from now.
    """

    status: int
    message: str | None = None
    kind: str | None = None
    retry_after: float | str | None = None
    delay_s: float = 0
    html: bool = False


Answer: TypeAlias = Reply | Failure
