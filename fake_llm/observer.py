"""The one Protocol by which the fake provider tells others what it saw, and asks when it may write.

ConnectionOpened ── RequestSeen ──┬── WriteStarted ──┬── gate(-1) ─ gate(stop) … ── WriteEnded ── ConnectionClosed
                                  └── Refused ───────┘   (of a late reply gate(-2) comes first, and then the delay)
"""

from __future__ import annotations

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
    """The connection is gone; `by_us`: after a reply that ends it, as `Connection: close` asks for."""

    conn: Conn
    by_us: bool = False


@value
class RequestSeen:
    """A whole request arrived. `call` counts from 1; `key` is a fingerprint, "" without a key.

    `conversation` is None where no reply of a model is asked for (list of models, unknown path) or where the
    body could not be read as a request. `size` is the body's length in bytes as decoded. A key in the query is not in
    `path`. `session` is named by a prefix of the path, else by the key.
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

    def without_words(self) -> RequestSeen:
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
        )


@value
class RefusalSent:
    """The request gets `status` ≥ 400: by the script (`scripted`), or by the validator in the provider's words.

    `pairing`: a tool call without result, a result without call, a duplicate or one at the wrong place.
    `enforced` is False where the server is lenient: the fact is recorded, the request answered.
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
    """The request was accepted: from here on it is billed. `edited` names the edits that apply to this reply."""

    call: int
    status: int
    input_tokens: int
    stream: bool
    edited: tuple[str, ...] = ()


@value
class FrameMark:
    """`end` body bytes, chunk framing included, carry everything up to and including this frame."""

    end: int
    tokens: int
    completes: bool


@value
class WriteEnded:
    """Nothing more of this reply will be written (a refusal's too).

    `body_bytes` were written; `output_tokens` were generated: all of an unpaced reply, else those up to the
    hang-up. `frames` are the marks of the whole reply, one for a reply that is not streamed; of an endless one,
    those before its pings. `stop` is the reason scripted or derived, "" for a refusal.
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
    """No script line matched, and the client got a 500 that says why."""

    call: int
    why: str


Fact: TypeAlias = (
    ConnectionOpened | ConnectionClosed | RequestSeen | RefusalSent | WriteStarted | WriteEnded | RequestUnscripted
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
    """Where a reply stands when the gate is asked.

    `carried` bytes were sent on this connection before this reply; `head` bytes are its status line and headers;
    `frame_ends` are body offsets, () where it is not streamed; `body` is the whole body with chunk framing, -1 if
    endless; `at` is the body offset reached, `BEFORE_HEAD` before the head's first byte, `ARRIVED` before the time that
    passes first.
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
    """Hears every fact. One that has a `gate` too is a `Holder`; by others each reply passes at once."""

    def saw(self, fact: Fact) -> None:
        """Hear of a fact; must not raise."""


class Holder(Observer, Protocol):
    """Hears every fact, and holds replies. It may have a method `passes(call)` too: whether a reply that is neither
    paced nor late can do without its gate, and so without a task.
    """

    async def gate(self, point: Point) -> Sequence[int]:
        """Return when the bytes after `point` may be written; the offsets returned are further stops.

        Asked before the first byte of every reply, at each stop (all bytes before it are written, none after),
        and before each delayed frame. Of a reply that is late as a whole it is also asked before that time passes.
        """


class Silent:
    """An observer that hears nothing and holds nothing."""

    def saw(self, fact: Fact) -> None:
        """Forget it."""
