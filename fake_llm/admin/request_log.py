"""A session's request log: one entry for each request, with its outcome and its cost."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, Self, TypeAlias

from wedgehog.fake_llm.clock import ProviderClock
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import ConnectionClosed, Fact, RequestFacts, RequestSeen, WriteEnded
from wedgehog.fake_llm.script.main_call import MainShape, purpose_of
from wedgehog.fake_llm.value import value

_MOST_KEPT: Final = 10_000
_BODIES_KEPT: Final = 100
"""A long session sends its whole history with each request, so more bodies may not fit into memory."""

DeliveryEnd: TypeAlias = Literal["complete", "hung_up", "cut"]


@dataclass(frozen=True, slots=True)
class LoggedFault:
    """A fault on a reply, from body offset `at` on.

    `passed` returns the body bytes that got through so far, None for all written bytes; `proof` returns the proof that
    the fault was applied, "" without one.
    """

    fault: str
    at: int | None = None
    passed: Callable[[], int | None] = lambda: None
    proof: Callable[[], str] = lambda: ""
    closes: bool = False
    """Whether it ends the connection: the close that follows is no hang-up of the client."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"name": self.fault, "byte": self.at, "proof": self.proof()}


@value
class RequestSummary:
    """The part of a conversation that the log keeps."""

    model: str
    tool_results: int
    shape: MainShape
    purpose: str
    brings_results: bool

    @classmethod
    def of(cls, talk: Conversation) -> Self:
        """Summarize a conversation."""
        results = sum([len(message.tool_results) for message in talk.messages])
        last = bool(talk.messages and talk.messages[-1].tool_results)
        return cls(talk.model, results, MainShape.of(talk), purpose_of(talk), last)

    def background(self, main: MainShape | None) -> str:
        """Return the purpose of a call that does not look like a main call, else ""."""
        return "" if main is None or main.alike(self.shape) or self.brings_results else self.purpose


@dataclass(slots=True)
class LoggedRequest(RequestFacts):
    """A request and its reply. Turn, step and attempt are its position in its session.

    `seen` is the request without its body, `summary` describes the body. If no model is asked, the position is 0 and
    `summary` is None.
    """

    arrived: datetime = field(kw_only=True)
    summary: RequestSummary | None = None
    turn: int = 0
    step: int = 0
    attempt: int = 0
    retry_of: int | None = None
    ended_at: datetime | None = None
    gone_at: datetime | None = None
    struck: LoggedFault | None = None
    conversation: str = ""
    """The declared conversation to which it belongs."""
    pending: Any = None
    """The fault that is still to be applied to this reply."""

    def saw_by(self, clock: ProviderClock, fact: Fact) -> None:
        """Enter a fact about this call or its connection, with its time where that is kept."""
        self.saw(fact)
        if isinstance(fact, WriteEnded):
            self.ended_at = clock.wall()
        elif isinstance(fact, ConnectionClosed) and not fact.by_us:
            self.gone_at = clock.wall()

    @property
    def outcome(self) -> DeliveryEnd | None:
        """How the reply ended, None while it is under way."""
        short = self.struck is not None and self.ended is not None and self.bytes_delivered < self.ended.body_bytes
        if self.ended is None or (short and self.gone_at is None):
            return None
        if (short or self.ended.how == "hung_up") and self.struck is not None and self.struck.closes:
            return "cut"
        return "hung_up" if short else self.ended.how

    @property
    def bytes_delivered(self) -> int:
        """Body bytes known to have been passed to the client."""
        written = self.ended.body_bytes if self.ended else 0
        passed = self.struck.passed() if self.struck else None
        return written if passed is None else max(0, min(written, passed))

    @property
    def tokens_delivered(self) -> int:
        """Output tokens in those bytes."""
        marks = self.marks_within(self.bytes_delivered) if self.accepted else ()
        return max((mark.tokens for mark in marks), default=0)

    def as_json(self, main: MainShape | None) -> dict[str, Any]:
        """Return the entry as plain data; `main` is the shape of the session's main calls."""
        seen, summary, refused, started, ended = self.seen, self.summary, self.refused, self.started, self.ended
        return {
            "call": seen.call,
            "session": seen.session,
            "arrived": self.arrived.isoformat(),
            **_fields(seen, "wire", "method", "path", "key", "user_agent"),
            "model": summary.model if summary else None,
            "stream": started is not None and started.stream,
            **_fields(self, "turn", "step", "attempt", "retry_of"),
            "conversation": self.conversation,
            "background": summary.background(main) if summary else "",
            "request_bytes": seen.size,
            "tool_results": summary.tool_results if summary else 0,
            "accepted": self.accepted,
            "status": refused.status if refused and refused.enforced else 200,
            "error": _fields(refused, "kind", "message", "pairing", "scripted", "enforced") if refused else None,
            "input_tokens_billed": started.input_tokens if started else 0,
            "output_tokens_billed": ended.output_tokens if ended and self.accepted else 0,
            "tokens_delivered": self.tokens_delivered,
            "bytes_delivered": self.bytes_delivered,
            "fault": self.struck.as_json() if self.struck else None,
            "ended": self.outcome,
            "ended_s": self._after(self.ended_at),
            "hung_up_s": self._after(self.gone_at or self.ended_at) if self.outcome == "hung_up" else None,
        }

    def line(self) -> str:
        """The finished request in one line, for a log."""
        seen, model = self.seen, self.summary.model if self.summary else ""
        status = self.refused.status if self.refused and self.refused.enforced else 200
        why = f" {self.refused.kind}: {self.refused.message}" if self.refused else ""
        paid = f" {self.tokens_delivered} tokens" if self.accepted else ""
        fault = f" fault {self.struck.fault}" if self.struck else ""
        ended = "" if self.outcome in ("complete", None) else f" {self.outcome}"
        took = f" {1000 * (self._after(self.ended_at) or 0):.0f} ms"
        words = f"#{seen.call} {status} {seen.method} {seen.path} {model}{paid}{took}{fault}{ended}{why}"
        return "".join(char if char.isprintable() else " " for char in words)

    def _after(self, moment: datetime | None) -> float | None:
        return None if moment is None else round((moment - self.arrived).total_seconds(), 4)


def _fields(of: object, *names: str) -> dict[str, Any]:
    return {name: getattr(of, name) for name in names}


class RequestLog:
    """The last 10,000 requests of a session, in their order, and the bodies of the last 100."""

    def __init__(self) -> None:
        self.attempts: deque[LoggedRequest] = deque(maxlen=_MOST_KEPT)
        self._bodies: deque[tuple[int, bytes]] = deque(maxlen=_BODIES_KEPT)
        self._asked: dict[int, tuple[int, int | None]] = {}
        """How often the same request came, and its last call."""
        self._main: MainShape | None = None

    def arrived(self, seen: RequestSeen, now: datetime) -> LoggedRequest:
        """Add a request with its position: user messages count turns, tool rounds count steps."""
        attempt = LoggedRequest(seen.without_words(), arrived=now)
        self.attempts.append(attempt)
        self._bodies.append((seen.call, seen.body))
        if seen.conversation is not None:
            attempt.summary = RequestSummary.of(seen.conversation)
            self._place(attempt, seen.conversation)
            self._look_at(attempt.summary.shape)
        return attempt

    def as_json(self) -> list[dict[str, Any]]:
        """Return all entries as plain data."""
        return [attempt.as_json(self._main) for attempt in self.attempts]

    def body(self, call: int) -> bytes | None:
        """The body of a request; None if it is not one of the last 100."""
        return next((body for number, body in self._bodies if number == call), None)

    def _place(self, attempt: LoggedRequest, talk: Conversation) -> None:
        same = hash((talk.wire, talk.model, talk.messages))
        times, attempt.retry_of = self._asked.get(same, (0, None))
        attempt.attempt = times + 1
        self._asked[same] = attempt.attempt, attempt.seen.call
        users = [index for index, message in enumerate(talk.messages) if message.role == "user"]
        since = talk.messages[users[-1] + 1 if users else 0 :]
        attempt.turn = max(1, len(users))
        attempt.step = 1 + sum(1 for message in since if message.tool_calls)

    def _look_at(self, shape: MainShape) -> None:
        """Treat the calls with the most tools as the main calls."""
        if shape.tools and (self._main is None or len(shape.tools) > len(self._main.tools)):
            self._main = shape
