"""What is common to all dialects: the five verbs, and the values that they pass."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.frame import Frame
from wedgehog.fake_llm.reply import Reply, Stop, ToolCall
from wedgehog.fake_llm.request import Request
from wedgehog.fake_llm.usage import Billed


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request gets no reply. "" as kind or message: what the provider says at that status.

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
    """A body that is sent in one piece. `kind` and `message` are an error's, as the body tells them."""

    status: int
    body: bytes
    kind: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The request that a reply answers, and what the dialect has to tell beside the reply's items."""

    request: Request
    conversation: Conversation
    billed: Billed
    created_s: int


class Dialect(Protocol):
    """A provider's wire format. Each is a module; the constants say what differs in framing alone."""

    @property
    def WIRE(self) -> str:  # noqa: N802  a module's constant
        """Its name in scripts and facts."""

    @property
    def PATH(self) -> str:  # noqa: N802
        """Where replies are asked for."""

    @property
    def REQUEST_ID(self) -> str:  # noqa: N802
        """The header that names a reply."""

    @property
    def PING(self) -> bytes:  # noqa: N802
        """A keep-alive on a stream."""

    @property
    def ERROR_EVENT(self) -> str:  # noqa: N802
        """The event name of an error inside a stream."""

    def parse(self, document: dict[str, object]) -> Conversation:
        """Read a request's body; what makes no sense is left out, `refuse` has words for it."""

    def refuse(self, request: Request, models: Collection[str] | None) -> Refusal | None:
        """Say why the provider would not answer, or None. `models` that exist, None for any."""

    def render(self, reply: Reply, exchange: Exchange) -> bytes:
        """Write a reply that is not streamed."""

    def stream(self, reply: Reply, exchange: Exchange) -> Iterator[Frame]:
        """Write a streamed reply, one frame per event."""

    def error(self, refusal: Refusal, request_id: str) -> Response:
        """Write an error in the provider's shape."""


def stop_of(reply: Reply) -> Stop:
    """Return a reply's stop reason, scripted or derived from its items."""
    return reply.stop or ("tool" if any(isinstance(item, ToolCall) for item in reply.items) else "end")


def is_whole(reply: Reply, index: int) -> bool:
    """Tell if item `index` is complete: the last one of a reply that stopped at max_tokens is not."""
    return reply.stop != "max_tokens" or index < len(reply.items) - 1
