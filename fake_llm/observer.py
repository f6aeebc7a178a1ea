"""The Protocol by which the fake provider reports facts, and asks when it may write.

ConnectionOpened ── RequestSeen ──┬── WriteStarted ──┬── gate(-1) ─ gate(stop) … ── WriteEnded ── ConnectionClosed
                                  └── RefusalSent ───┘   (before a delayed reply: gate(-2), then the delay)
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.value import value

ARRIVED: Final = -2
BEFORE_HEAD: Final = -1


@dataclass(frozen=True, slots=True)
class Conn:
    """A TCP connection that the fake accepted; `peer` is its remote (host, port)."""

    id: int
    peer: tuple[str, int]


@dataclass(frozen=True, slots=True)
class ConnectionOpened:
    """A client connected."""

    conn: Conn


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """The connection is closed; `by_us`: the server closed it after a reply (`Connection: close`)."""

    conn: Conn
    by_us: bool = False


@value
class RequestSeen:
    """A whole request arrived. `call` counts from 1; `key` is a fingerprint, "" without a key.

    `conversation` is None if the request asks for no reply of a model, or if its body cannot be read. `size` is the
    decoded body's length in bytes. `path` holds no key. `session` comes from a prefix of the path, else from the key.
    """

    call: int
    conn: Conn
    wire: str
    path: str
    method: str
    key: str
    conversation: Conversation | None
    body: bytes
    size: int
    user_agent: str = ""
    session: str = ""
    websocket: bool = False
    """Whether it came as a message of a WebSocket."""
    host: str = ""
    """Its Host header."""

    def without_words(self) -> "RequestSeen":
        """Return the same without `conversation` and `body`."""
        return RequestSeen(
            self.call,
            self.conn,
            self.wire,
            self.path,
            self.method,
            self.key,
            None,
            b"",
            self.size,
            self.user_agent,
            self.session,
            self.websocket,
            self.host,
        )


@value
class RefusalSent:
    """The request gets `status` ≥ 400, from the script (`scripted`) or from the provider's validation.

    `pairing`: a tool call without result, a result without call, a duplicate or one at the wrong place.
    `enforced` is False if the server is not strict: the fact is reported and the request is answered.
    """

    call: int
    status: int
    kind: str
    message: str
    pairing: bool
    scripted: bool
    retry_after: float | str | None = None
    enforced: bool = True


@value
class WriteStarted:
    """The request is accepted and billed. `edited` names the edits that apply to this reply."""

    call: int
    status: int
    input_tokens: int
    stream: bool
    edited: tuple[str, ...] = ()


@value
class FrameMark:
    """The body offset, chunk framing included, at which a frame ends, and the tokens delivered by then."""

    end: int
    tokens: int
    completes: bool


@value
class WriteEnded:
    """The writing of a reply, or of a refusal, has ended.

    `body_bytes` were written; `output_tokens` were generated: all of an unpaced reply, else those up to the hang-up.
    `frames` are the marks of the whole reply: one if it is not streamed, those before the pings if it is endless.
    `stop` is the stop reason, "" for a refusal.
    """

    call: int
    head_bytes: int
    body_bytes: int
    output_tokens: int
    frames: tuple[FrameMark, ...]
    how: Literal["complete", "hung_up"]
    stop: str


@dataclass(frozen=True, slots=True)
class RequestUnscripted:
    """No script line matched; the client gets a 500 that says why."""

    call: int
    why: str


@value
class TokenRequestAnswered:
    """The token endpoint answered a request; `token` is the fingerprint of the issued token, which is not kept.

    `status` is 0 if the endpoint never answers.
    """

    call: int
    grant: str
    status: int
    error: str
    token: str


Fact: TypeAlias = (
    ConnectionOpened
    | ConnectionClosed
    | RequestSeen
    | RefusalSent
    | WriteStarted
    | WriteEnded
    | RequestUnscripted
    | TokenRequestAnswered
)


@dataclass(slots=True)
class RequestFacts:
    """One request and the facts about it that came later, None until they come."""

    seen: RequestSeen
    refused: RefusalSent | None = None
    started: WriteStarted | None = None
    ended: WriteEnded | None = None

    def saw(self, fact: Fact) -> None:
        """Enter a fact about this call."""
        match fact:
            case RefusalSent():
                self.refused = fact
            case WriteStarted():
                self.started = fact
            case WriteEnded():
                self.ended = fact
            case _:
                pass

    @property
    def accepted(self) -> bool:
        """Whether the provider accepted the request, so that it is billed."""
        return self.started is not None

    def marks_within(self, body_bytes: int) -> list[FrameMark]:
        """Return the marks of the frames that lie whole in the first bytes of the reply's body."""
        return [mark for mark in self.ended.frames if mark.end <= body_bytes] if self.ended else []


@value
class Point:
    """The progress of a reply when the gate is asked.

    `carried`: bytes sent on this connection before this reply. `head`: length of status line and headers.
    `frame_ends`: body offsets, () if not streamed. `body`: length of the body with chunk framing, -1 if endless.
    `at`: the body offset reached, `BEFORE_HEAD` before the head's first byte, `ARRIVED` before the reply's delay.
    """

    call: int
    conn: Conn
    carried: int
    head: int
    frame_ends: tuple[int, ...]
    body: int
    at: int
    stream: bool


Gate: TypeAlias = Callable[[Point], Awaitable[Sequence[int]]]


class Observer(Protocol):
    """Receives every fact, and may hold replies by two optional methods; without a `gate` each reply passes at once.

    `async gate(point)` returns when the bytes after `point` may be written; the returned offsets are further stops. It
    is asked before a reply's delay, before its first byte, at each stop (all bytes before the stop are written, none
    after), and before each delayed frame. `passes(call)`: a reply without pauses needs no gate, and so no task.
    """

    def saw(self, fact: Fact) -> None:
        """Take a fact; must not raise."""


class Silent:
    """An observer that drops every fact and holds nothing."""

    def saw(self, fact: Fact) -> None:
        """Drop the fact."""
