"""The functions of a dialect, the values that they pass, and helpers for all dialects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.frame import Frame
from wedgehog.fake_llm.reply import Reply, Stop, ToolCall
from wedgehog.fake_llm.request import Request
from wedgehog.fake_llm.usage import Billed
from wedgehog.fake_llm.value import value

Models: TypeAlias = Sequence[str] | None
"""The models that exist; None: any."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request gets no reply. A kind or message of "" is the provider's own at that status.

    `pairing`: a tool call without result, a result without call, a duplicate, or one at the wrong place.
    """

    status: int
    message: str = ""
    kind: str = ""
    param: str | None = None
    code: str | None = None
    pairing: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """A body that is not streamed; `kind` and `message` are those of an error."""

    status: int
    body: bytes
    kind: str = ""
    message: str = ""
    content_type: str = "application/json"


@value
class Exchange:
    """The request that a reply answers, and what the dialect writes beside the reply's items."""

    request: Request
    conversation: Conversation
    billed: Billed
    created_s: int


@dataclass(frozen=True, slots=True)
class Framing:
    """The framing of a stream's events, with bytes before, between and after them; `ping` keeps the stream alive."""

    content_type: str
    ping: bytes
    opening: bytes = b""
    between: bytes = b""
    closing: bytes = b""


class Dialect(Protocol):
    """A provider's wire format, as a module.

    request ─▶ parse ─▶ refuse? ─▶ render or stream ─▶ bytes        `error` for failures
    """

    @property
    def WIRE(self) -> str:  # noqa: N802  a module's constant
        """Its name in scripts and facts."""

    @property
    def PATHS(self) -> re.Pattern[str]:  # noqa: N802
        """All paths of its API; if two dialects share a path, the headers decide."""

    @property
    def MARKS(self) -> tuple[str, ...]:  # noqa: N802
        """Headers and query parameters that only its clients send."""

    @property
    def BROKE(self) -> Refusal:  # noqa: N802
        """The answer when a prepaid balance is used up."""

    @property
    def TOO_LARGE(self) -> Refusal:  # noqa: N802
        """The answer to a body that is too large."""

    def asks_for_reply(self, request: Request) -> bool:
        """Return True for a request for a model's reply; `aside` answers all others."""

    def parse(self, request: Request) -> Conversation:
        """Read a request for a reply that has a document; skip invalid parts."""

    def refuse(self, request: Request, models: Models) -> Refusal | None:
        """Return why the provider refuses a request, or None."""

    def render(self, reply: Reply, exchange: Exchange) -> bytes:
        """Write a reply that is not streamed."""

    def stream(self, reply: Reply, exchange: Exchange) -> Iterator[Frame]:
        """Write a streamed reply, one frame per event."""

    def framing(self, exchange: Exchange) -> Framing:
        """Return the framing of the events of `stream`."""

    def error(self, refusal: Refusal, request: Request) -> Response:
        """Write an error in the provider's shape."""

    def error_event(self, refusal: Refusal, exchange: Exchange, number: int) -> bytes:
        """Write an error as an event of a stream, after `number` other events."""

    def aside(self, request: Request, models: Models) -> Response | None:
        """Answer a request for models or token counts, which costs nothing; None if there is no such path."""

    def headers(self, request: Request) -> list[tuple[str, str]]:
        """Return the headers that identify a reply."""


def posts_to(paths: re.Pattern[str]) -> Callable[[Request], bool]:
    """Return a test if a request is a POST to one of the paths."""
    return lambda request: request.method == "POST" and paths.fullmatch(request.path) is not None


def stop_of(reply: Reply) -> Stop:
    """Return a reply's stop reason, scripted or derived from its items."""
    return reply.stop or ("tool" if any(isinstance(item, ToolCall) for item in reply.items) else "end")


def is_whole(reply: Reply, index: int) -> bool:
    """Return True if item `index` is complete: the last item before a stop at max_tokens is not."""
    return reply.stop != "max_tokens" or index < len(reply.items) - 1


def first(refusals: Callable[[Request, Models], Iterator[Refusal]]) -> Callable[[Request, Models], Refusal | None]:
    """Turn a generator of refusals into a dialect's `refuse`: the first refusal counts."""
    return lambda request, models: next(refusals(request, models), None)


def bad(message: str) -> Refusal:
    """Refuse with status 400."""
    return Refusal(400, message)


def unpaired(message: str) -> Refusal:
    """Refuse with status 400 because tool calls and results do not match."""
    return Refusal(400, message, pairing=True)
