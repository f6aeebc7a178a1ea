"""What a dialect is, the values that it passes, and helpers for all dialects."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Self, TypeAlias, TypeVar

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.frame import Frame, encode
from wedgehog.fake_llm.reply import CUT_STOPS, ItemKind, Overflow, Reply, Stop, Thinking
from wedgehog.fake_llm.request import Request, is_known, json_object, model_asked
from wedgehog.fake_llm.usage import Billed, Meter, input_tokens, tokens_in, words
from wedgehog.fake_llm.value import value

Told = TypeVar("Told")

Models: TypeAlias = Sequence[str] | None
"""The models that exist; None: any."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request gets no reply. A kind or message of "" is the provider's own at that status.

    `pairing`: a tool call without result, a result without call, a duplicate, or one at the wrong place.
    `gateway_accepts`: a duplicate, or a call without a name. A gateway that sends such calls itself accepts them.
    """

    status: int
    message: str = ""
    kind: str = ""
    param: str | None = None
    code: str | None = None
    pairing: bool = False
    gateway_accepts: bool = False


@dataclass(frozen=True, slots=True)
class Response:
    """A body that is not streamed; `kind` and `message` are those of an error."""

    status: int
    body: bytes
    kind: str = ""
    message: str = ""
    content_type: str = "application/json"

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Answer with a JSON object and status 200."""
        return cls(200, encode(document))


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


class ReplyWriter(ABC):
    """Writes one reply in a provider's format."""

    STOPS: ClassVar[Mapping[Stop, str]]
    """The provider's words for the stop reasons."""

    def __init__(self, reply: Reply, exchange: Exchange) -> None:
        self.reply, self.exchange = reply, exchange
        self.items, self.call = reply.items, exchange.request.call
        self.read, self.spent = exchange.billed.input_tokens, exchange.billed.output_tokens

    @abstractmethod
    def whole(self) -> bytes:
        """Write the reply not streamed."""

    @abstractmethod
    def frames(self) -> Iterator[Frame]:
        """Write the reply streamed, one frame per event."""

    @property
    def stop(self) -> str:
        """The stop reason in the provider's words."""
        return self.STOPS[self.reply.stop_reason]

    @property
    def thought(self) -> int:
        """The output tokens that are reasoning."""
        return min(sum(tokens_in(item.text) for item in self.items if isinstance(item, Thinking)), self.spent)

    def meter(self) -> Meter:
        """Return a meter for the reply's output tokens."""
        return Meter(self.spent, self.exchange.conversation.copies * sum(len(words(item)) for item in self.items))

    def completes(self, index: int) -> bool:
        """Return True if item `index` is complete: the last item of a reply that was cut is not."""
        return self.reply.stop not in CUT_STOPS or index < len(self.items) - 1

    def delivers(self, index: int) -> bool:
        """Return True if item `index` is a complete text or tool call."""
        return self.completes(index) and not isinstance(self.items[index], Thinking)


class Dialect(ABC):
    """A provider's wire format.

    request ─▶ parse ─▶ refuse? ─▶ render or stream ─▶ bytes        `error` for failures
    """

    WIRE: ClassVar[str]
    """Its name in scripts and facts."""
    PATHS: ClassVar[re.Pattern[str]]
    """All paths of its API; if two dialects share a path, the headers decide."""
    REPLIES: ClassVar[re.Pattern[str]]
    """The paths to which a request for a model's reply is posted."""
    WRITER: ClassVar[type[ReplyWriter]]
    MARKS: ClassVar[tuple[str, ...]] = ()
    """Headers and query parameters that only its clients send."""
    STOCK: ClassVar[tuple[str, ...]] = ()
    """The models that it lists if any name exists."""
    BROKE: ClassVar[Refusal]
    """The answer when a prepaid balance is used up."""
    EXPIRED: ClassVar[Refusal] = Refusal(401)
    """The answer to an access token that has expired; without words it is that to any unusable key."""
    NO_KEY: ClassVar[Refusal] = Refusal(401)
    TOO_LARGE: ClassVar[Refusal] = Refusal(413)
    """The answer to a body that is too large."""
    FRAMING: ClassVar[Framing]
    UNUSABLE: ClassVar[Mapping[str, Refusal]] = {}
    """The answer to an item of the conversation that it cannot use, by the item's kind."""

    def asks_for_reply(self, request: Request) -> bool:
        """Return True for a request for a model's reply; `aside` answers all others."""
        return request.method == "POST" and self.REPLIES.fullmatch(request.path) is not None

    def whole(self, request: Request) -> Request:
        """Return a request with all that the model reads, also what the provider holds of its conversation."""
        return request

    @abstractmethod
    def parse(self, request: Request) -> Conversation:
        """Read a request for a reply that has a document; skip invalid parts."""

    @abstractmethod
    def refusals(self, request: Request, models: Models) -> Iterator[Refusal]:
        """Yield what the provider refuses, in the order in which it looks."""

    def refuse(self, request: Request, models: Models, *, gateway: bool = False) -> Refusal | None:
        """Return why the provider refuses a request, or None; a `gateway` accepts equal ids and empty names."""
        found = self.refusals(request, models)
        return next((refusal for refusal in found if not (gateway and refusal.gateway_accepts)), None)

    def render(self, reply: Reply, exchange: Exchange) -> bytes:
        """Write a reply that is not streamed."""
        return self.WRITER(reply, exchange).whole()

    def stream(self, reply: Reply, exchange: Exchange) -> Iterator[Frame]:
        """Write a streamed reply, one frame per event."""
        return self.WRITER(reply, exchange).frames()

    def framing(self, exchange: Exchange) -> Framing:
        """Return the framing of the events of `stream`."""
        return self.FRAMING

    @abstractmethod
    def error(self, refusal: Refusal, request: Request) -> Response:
        """Write an error in the provider's shape."""

    @abstractmethod
    def error_event(self, refusal: Refusal, exchange: Exchange, number: int) -> bytes:
        """Write an error as an event of a stream, after `number` other events."""

    def gateway_error(self, refusal: Refusal, exchange: Exchange, number: int) -> bytes:
        """Write it as gateways do, where they have a form of their own."""
        return self.error_event(refusal, exchange, number)

    def error_messages(self, told: Response, headers: Mapping[str, str], request: Request) -> list[dict[str, Any]]:
        """Write an error as messages of a WebSocket, with the headers that tell a client when to come again."""
        error = (json_object(told.body) or {}).get("error") or {"type": "server_error", "message": told.message}
        named = {name.lower(): given for name, given in headers.items()}
        return [{"type": "error", "status": told.status, "error": error} | ({"headers": named} if named else {})]

    @abstractmethod
    def aside(self, request: Request, models: Models) -> Response | None:
        """Answer a request for models or token counts, which costs nothing; None if there is no such path."""

    def unusable(self, item: ItemKind, request: Request) -> Refusal:
        """Return the words for an item of the conversation that the provider cannot use."""
        return self.UNUSABLE.get(item, Refusal(400))

    def too_long(self, overflow: Overflow, request: Request) -> Refusal:
        """Return the words for a request that is longer than the model's window."""
        return Refusal(400, f"The request has {overflow.tokens} tokens, and the model reads {overflow.window}.")

    def headers(self, request: Request) -> list[tuple[str, str]]:
        """Return the headers that identify a reply."""
        return []

    def failure_headers(self, status: int, wait_s: float, now: datetime) -> list[tuple[str, str]]:
        """Return the headers of a scripted failure on which clients act; its limit ends after `wait_s`."""
        return []

    def with_wait(self, told: Response, wait_s: float) -> Response:
        """Return a failure with the wait that its Retry-After asks for, where the provider writes that in the body."""
        return told

    def by_status(self, errors: Mapping[int, Told], status: int) -> Told:
        """Return what the provider says at a status; others are as 400 or 500."""
        return errors.get(status) or errors[500 if status >= 500 else 400]

    def counted(self, request: Request, models: Models, told: Callable[[int], dict[str, Any]]) -> Response:
        """Answer a request for a count of its tokens; `told` is the answer for a number."""
        refusal = self.refuse(request, models)
        return self.error(refusal, request) if refusal else Response.of(told(input_tokens(self.parse(request))))

    def listed(self, request: Request, models: Models, root: str) -> Response | None:
        """Answer a GET of the models at the path `root`, or of one model below it."""
        name = model_asked(request, root)
        if name is None:
            return None
        if not request.key:
            return self.error(self.NO_KEY, request)
        if not name:
            return Response.of(self.models([self.model(one) for one in models or self.STOCK]))
        if is_known(name, models):
            return Response.of(self.model(name))
        return self.error(self.no_model(name, request), request)

    def models(self, models: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the list of all models."""
        return {"models": models}

    def model(self, name: str) -> dict[str, Any]:
        """Return what the provider says about a model."""
        raise NotImplementedError

    def no_model(self, name: str, request: Request) -> Refusal:
        """Refuse an unknown model."""
        raise NotImplementedError


def bad(message: str) -> Refusal:
    """Refuse with status 400."""
    return Refusal(400, message)


def nameless(refusal: Refusal) -> Refusal:
    """Refuse a tool call without a name, which a gateway accepts."""
    return replace(refusal, gateway_accepts=True)


def unpaired(message: str, *, gateway_accepts: bool = False) -> Refusal:
    """Refuse with status 400 because tool calls and results do not match."""
    return Refusal(400, message, pairing=True, gateway_accepts=gateway_accepts)
