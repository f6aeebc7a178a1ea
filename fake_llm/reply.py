"""What the model says, as plain values; each dialect encodes them into its own bytes.

>>> Reply((Text("Let me look."), ToolCall("shell", {"command": "ls"})))  # doctest: +SKIP
"""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol, TypeAlias

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.edit_kinds import Edit

Stop = Literal["end", "tool", "max_tokens", "refusal", "filter"]
CUT_STOPS: Final = ("max_tokens", "filter")
"""Stop reasons of a reply that lacks its end: a token limit, and a filter of the provider."""
CallForm = Literal["whole", "no_input", "made_up_result"]
"""How the model writes a tool call in its text: as the agent expects, or in another way."""
ItemKind = Literal["tool_result", "tool_call", "image", "thinking", "text"]
"""What an item of a conversation is."""
BALANCE: Final = "balance"
EXPIRED: Final = "expired"
OAUTH_PATH: Final = "/oauth/token"
HOUR_S: Final = 3600
TokenError: TypeAlias = Literal[
    "invalid_grant",
    "invalid_client",
    "invalid_request",
    "unsupported_grant_type",
    "server_error",
    "temporarily_unavailable",
]


@dataclass(frozen=True, slots=True)
class Text:
    """Text for the user; a streamed piece comes every `pace_ms` (0: all at once).

    `span` is where the words stand in a text that is JSON, as the characters of one of its strings; None: all is words.

    >>> Text('{"answer": "A \\"bird\\"."}', span=(12, 23)).words
    'A "bird".'
    """

    text: str
    pace_ms: float = 0
    span: tuple[int, int] | None = None

    @property
    def words(self) -> str:
        """What the model says."""
        return self.text if self.span is None else unquoted(self.text[slice(*self.span)])

    def behind(self, chars: int) -> "Text":
        """What follows its first characters."""
        span = self.span and (max(0, self.span[0] - chars), max(0, self.span[1] - chars))
        return replace(self, text=self.text[chars:], span=span)


_LONGEST_ESCAPE: Final = 6


def unquoted(text: str) -> str:
    r"""The characters that stand for `text` in JSON, without an escape that was cut.

    >>> unquoted("a\\nb\\u00")
    'a\nb'
    """
    for end in range(len(text), max(-1, len(text) - _LONGEST_ESCAPE), -1):
        with contextlib.suppress(ValueError):
            return str(json.loads(f'"{text[:end]}"'))
    return text


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning; a dialect whose provider hides it bills its tokens and shows nothing."""

    text: str


@dataclass(frozen=True, slots=True)
class FileAction:
    """What a call of a file tool asks for, whatever the agent calls its tool and its parameters."""

    role: str
    """read_file, write_file, edit_file or search_files."""
    path: str
    """From the agent's working folder."""
    content: str = ""
    """What `write_file` writes."""
    old: str = ""
    new: str = ""
    """What `edit_file` puts in the place of `old`."""
    pattern: str = ""
    """What `search_files` looks for."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of one of the agent's tools.

    `id` is the id without the provider's prefix ("1x2" becomes `toolu_1x2`, `call_1x2`); empty: generated.
    `raw_args` is sent verbatim instead of `args`, even if it is not JSON. A streamed piece of the arguments comes every
    `pace_ms`. A shell's command that is `untraced` has no part that tells when it ran: it is the same each time.
    """

    name: str
    args: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    raw_args: str | None = None
    pace_ms: float = 0
    untraced: bool = False
    file: FileAction | None = None
    """None if it is no call of a file tool."""


Item: TypeAlias = Text | Thinking | ToolCall


def pace_s(item: Item) -> float:
    """Seconds before each streamed piece of an item."""
    return 0.0 if isinstance(item, Thinking) else item.pace_ms / 1000


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that the provider reports; None: estimated from the characters."""

    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """An accepted request's answer. `delay_s` passes before the first byte; most edits apply only to streams.

    A `stop` of None is derived from the items: "tool" if one is a call, else "end". With `shows_thoughts` a dialect
    whose own provider hides reasoning sends it as compatible providers do. With `no_choice` a reply without items comes
    as a body without choices (or candidates), in dialects that have a list of them. With `broken_call` it has
    the stop reason of a tool call that the provider could not read, on wires that have one (Gemini).
    With `plain` the last words are sent as they are, also where the agent expects a tool call or a form. `call_form` is
    the form of a tool call that the model writes in its text. `stop_sequence` is what ended the text, if the request
    named it.
    """

    items: tuple[Item, ...] = ()
    usage: Usage | None = None
    stop: Stop | None = None
    delay_s: float = 0
    edits: tuple[Edit, ...] = ()
    shows_thoughts: bool = False
    no_choice: bool = False
    broken_call: bool = False
    plain: bool = False
    call_form: CallForm = "whole"
    stop_sequence: str = ""

    @property
    def stop_reason(self) -> Stop:
        """Why the model stops."""
        return self.stop or ("tool" if any(isinstance(item, ToolCall) for item in self.items) else "end")


@dataclass(frozen=True, slots=True)
class Overflow:
    """A request of `tokens` tokens, for a model whose window has room for `window` tokens."""

    tokens: int
    window: int


ErrorForm: TypeAlias = Literal["provider", "text", "string", "detail", "list"]
"""The body of an error: the provider's own, plain text, `{"error": text}`, `{"detail": text}`, or a list of its own."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The provider refuses or fails, in its own shape; `kind` and `message` default to what it says at `status`.

    The kind BALANCE is a used-up prepaid balance and EXPIRED an access token that has expired, both with each
    provider's own status and words. `html` sends a gateway's
    page instead of the provider's shape. `retry_after` is the header's value: seconds, a text sent as it is, or
    "date:SECONDS" for an HTTP date that many seconds from now. `item` is the kind of an item of the conversation that
    the provider cannot use, and `overflow` a request that is longer than the model's window; both in each provider's
    own words. `as_success` sends the provider's words under status 200, as some gateways do, and `form` sends them in
    another form.
    """

    status: int
    message: str | None = None
    kind: str | None = None
    retry_after: float | str | None = None
    delay_s: float = 0
    html: bool = False
    item: ItemKind | None = None
    overflow: Overflow | None = None
    as_success: bool = False
    form: ErrorForm = "provider"


Answer: TypeAlias = Reply | Failure


@dataclass(frozen=True, slots=True)
class TokenHarm:
    """How the answer to a token request is harmed: refused with `error`, and `late_s` seconds late (None: never)."""

    error: TokenError | None = None
    late_s: float | None = 0


class UnscriptedError(Exception):
    """No line of the script fits a conversation; the text says why."""


class Script(Protocol):
    """Answers only from the conversation, so that retries and parallel sessions get the right answers."""

    def answer(self, call: int, conversation: Conversation) -> Answer:
        """Return the answer to `conversation` (`call` is only for records), or raise UnscriptedError(why)."""
