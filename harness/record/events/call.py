"""Requests for the model, and the replies to them."""

from dataclasses import dataclass
from typing import Final, Literal

from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.events.files import FileCall

ReplyEnding = Literal["complete", "hung up", "stalled", "cut", "ended early"]
CUT_STOPS: Final = ("max_tokens", "filter")
"""Stop reasons of a reply that came whole and lacks its end."""
CALLS_AT_ONCE: Final = ("gemini", "ollama")
"""Wires whose streams have a tool call in one event, and nothing of a call that was cut."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool result that a request carried."""

    id: str
    chars: int
    is_error: bool = False
    token: str = ""
    """`turn.step.call` of the tool call, or empty if it is unknown."""
    printed: bool = True
    """Whether its text contains the last output of the command; of one that prints nothing, whether it is no error."""
    in_text: bool = False
    """Whether it is part of a message's text ("Observation: …"): then `chars` and `is_error` are unknown."""
    broken_off: str = ""
    """The words by which a shell says in it that its command breaks off in the middle; else empty."""
    prints: str = ""
    """The tool call whose output its text contains, if that is another one and its own output is missing."""
    signs: tuple[str, ...] | None = None
    """What its text tells: those of `SIGNS`, foreign, hollow, bare, answered, success; None: not recorded."""
    prints_first: bool | None = None
    """Whether its text has what the command prints first; None if that is unknown."""
    names_arguments: bool | None = None
    """Whether its text may name what is wrong with the arguments of its call; None if that was not recorded."""

    @property
    def signs_known(self) -> bool:
        """Whether `signs` says all that its text tells: they were recorded, and it is no part of a message."""
        return self.signs is not None and not self.in_text


@dataclass(frozen=True, slots=True)
class OpenToolCall:
    """A tool call of the model that a request carried without a result of it."""

    id: str
    token: str = ""
    """`turn.step.call` of the tool call, or empty if it is unknown."""


class RequestArrived(Event):
    """A request for the model reached the provider."""

    call: int
    conn: int
    wire: str
    path: str
    method: str = ""
    """Empty if it was not recorded, like `host`."""
    host: str = ""
    """The request's own Host header, which may name another host than the one it reached."""
    user_agent: str = ""
    """Its User-Agent header, in which most SDKs name themselves and their version."""
    model: str
    stream: bool
    turn: int
    """0 if no turn was open."""
    step: int
    attempt: int
    background: str = ""
    """The kind of background call; empty for a main call."""
    side: str = ""
    """The conversation beside the main one to which it belongs, such as `subagent 1`; step and attempt count there."""
    quotes: tuple[int, ...] = ()
    """Calls of side conversations whose replies stand in its messages."""
    notices: tuple[str, ...] = ()
    """Digests of what its messages say of the end of subagents; only of main calls after the first subagent.

    That in the result of a delegating call has the token of the call before it: `1.1.1:…`.
    """
    notices_lead: bool | None = None
    """Whether a text with one of them names a place or a tool, where more can be read; None: not recorded."""
    tool_notices: tuple[str, ...] | None = None
    """Digests of what its system text and messages say of failures of tools; None if this was not recorded."""
    loss_notices: tuple[str, ...] | None = None
    """Digests of what they say of messages that were left out; None if no fault strikes requests for a summary."""
    websocket: bool = False
    """Whether it came as a message of a WebSocket."""
    max_tokens: int | None = None
    """The agent's own limit of output tokens."""
    key: str = ""
    """A hash of the API key."""
    body_hash: str = ""
    body_bytes: int = 0
    messages: int = 0
    system_chars: int | None = None
    """Characters of its system text; None if this was not recorded."""
    system_shared: float | None = None
    """Share of the first system text to this model, with these tools, that stands in its own; None: not recorded."""
    rules_seen: bool | None = None
    """Whether the project's rules stand in it; None if the scenario has none."""
    tools: tuple[str, ...] = ()
    results: tuple[ToolResult, ...] = ()
    open_calls: tuple[OpenToolCall, ...] | None = None
    """Tool calls in its messages without a result; None if this was not recorded."""
    turns_seen: tuple[int, ...] = ()
    """Turns whose markers the conversation contains."""
    turns_doubled: tuple[int, ...] = ()
    """Turns whose message stands in it twice, as two equal messages of the user."""
    turns_repeated: tuple[int, ...] = ()
    """Those of them whose two messages stand one right behind the other."""
    replies_seen: tuple[int, ...] | None = None
    """Calls whose reply's whole text stands in its messages; None if this was not recorded."""
    replies_begun: tuple[int, ...] | None = None
    """Calls whose reply's first words stand in its messages; None if this was not recorded."""
    replies_doubled: tuple[int, ...] = ()
    """Calls whose reply, which came once, is the text of two messages of the model."""


class RequestRefused(Event):
    """The provider answered with a status of 400 or more; the call is not paid."""

    call: int
    status: int
    error: str
    message: str
    pairing: bool
    """Refused because tool calls and results do not pair."""
    scripted: bool
    """A fault or the script refused it; else our validator did."""
    retry_after_s: float | None = None
    """The wait of Retry-After, in seconds from this event."""
    retry_after_is_date: bool = False


class ReplyStarted(Event):
    """The provider accepted the request; the call is paid."""

    call: int
    input_tokens: int
    scripted: bool = False
    """The script sets the tokens (`usage`); they are not counted from what was sent."""


@dataclass(frozen=True, slots=True)
class ToolCallOffered:
    """A tool call in a reply."""

    token: str
    """`turn.step.call`"""
    name: str
    whole: bool
    """All arguments were delivered uncut."""
    wrapped: bool = False
    """All arguments were delivered uncut, but with other characters around them: a fence, a list."""
    misfits: bool = False
    """All arguments were delivered uncut, as a JSON object whose values do not fit the tool's schema."""
    traced: bool = False
    """Its command writes a line to our file when it starts, and one when it is done."""
    asks_user: bool = False
    """The tool's name says that it asks the user something."""
    file: FileCall | None = None
    """What it asks of a file; None if it is no call of a file tool."""
    digest: str = ""
    """Equal calls have an equal one; empty for one that is traced, since its command is never the same."""


class ReplyEnded(Event):
    """The reply is over: nothing more is generated or delivered."""

    call: int
    how: ReplyEnding
    stop: str
    """The stop reason of the whole reply: end, tool, max_tokens, filter or error."""
    output_tokens: int
    """Generated, so billed."""
    tokens_delivered: int
    body_bytes: int
    bytes_delivered: int
    blocks_delivered: int
    """Text blocks and tool calls that arrived whole."""
    text_delivered: str = ""
    tool_calls: tuple[ToolCallOffered, ...] = ()
    tokens_needed: int = 0
    """Tokens of the whole scripted reply if the agent's own limit cut it; else 0."""
    first_byte_s: float | None = None
    """Seconds from the request to the moment the provider sent the first byte; None if no byte of the body arrived."""
    damaged: bool = False
    """Whether a fault changed its stream or body, though it may have arrived whole."""
    says_all: bool = False
    """Whether such a fault left its words and tool calls as they were: it took only the usage, for example."""
    slowed: bool = False
    """Whether what is missing was only late: `bytes_delivered` is the most that can have arrived by now.

    An agent that has not hung up gets the rest after this event, when the fault is healed.
    """
    headers_delivered: bool | None = None
    """Whether status line and headers have certainly arrived; None if this was not recorded."""
    quiet_s: float | None = None
    """If it was only slow: the longest time without a byte of it, at most; None if this is not known."""


class HungUp(Event):
    """The agent closed the connection before the reply had arrived whole."""

    call: int


class CallUnscripted(Event):
    """The script has no reply for this main call; the run is an error."""

    call: int
    why: str
