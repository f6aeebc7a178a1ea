"""Anthropic's Messages API, `POST /v1/messages`; official clients drop events without an `event:` line."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.dialects.anthropic import threads
from wedgehog.fake_llm.dialects.anthropic.read import is_thought, messages_in
from wedgehog.fake_llm.dialects.anthropic.thinking import remember, signature_of
from wedgehog.fake_llm.dialects.anthropic.validate import refusals
from wedgehog.fake_llm.dialects.base import Dialect, Exchange, Framing, Models, Refusal, ReplyWriter, Response, bad
from wedgehog.fake_llm.frame import SSE, Frame, encode, event
from wedgehog.fake_llm.grapheme import pieces
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.reply import Item, ItemKind, Overflow, Text, Thinking, ToolCall, pace_s
from wedgehog.fake_llm.request import (
    Request,
    blocks,
    counted,
    listed,
    mapped,
    stops_in,
    system_first,
    text_of,
    tool_spec,
)
from wedgehog.fake_llm.usage import Meter, arguments

_PING: Final = event(b'{"type":"ping"}', "ping")
_ERRORS: Final = {
    400: ("invalid_request_error", "Invalid request."),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "There is an issue with your billing or payment information."),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "Not Found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    500: ("api_error", "Internal server error"),
    503: ("api_error", "Service unavailable"),
    504: ("timeout_error", "Request timed out"),
    529: ("overloaded_error", "Overloaded"),
}


class _AnthropicWriter(ReplyWriter):
    STOPS: ClassVar = {
        "end": "end_turn",
        "tool": "tool_use",
        "max_tokens": "max_tokens",
        "refusal": "refusal",
        "filter": "refusal",
    }

    def _remember(self) -> None:
        """Keep what must come back unmodified; a reply without thoughts leaves nothing."""
        if any(isinstance(item, Thinking) for item in self.items):
            calls = [index for index, item in enumerate(self.items) if isinstance(item, ToolCall)]
            ids = [str(self._opening(index)["id"]) for index in calls]
            remember(self.items, ids, self.exchange.request.memory)
        if threads.is_asked(self.exchange.request) and self.stop != "refusal":
            threads.remember(self.exchange.request, self._id, self._content())

    def whole(self) -> bytes:
        self._remember()
        return encode(self._message(self.spent) | {"content": self._content(), **self._ending()})

    def frames(self) -> Iterator[Frame]:
        """Yield events from `message_start` to `message_stop`, with the provider's ping."""
        self._remember()
        meter = self.meter()
        yield _frame("message_start", {"message": self._message(min(1, self.spent))})
        if not self.items:
            yield Frame(_PING)
        for index, item in enumerate(self.items):
            yield _frame("content_block_start", {"index": index, "content_block": self._opening(index)}, meter)
            if index == 0:
                yield Frame(_PING)
            pause_s = pace_s(item)
            for chars, delta in _deltas(item):
                meter.add(chars)
                yield _frame("content_block_delta", {"index": index, "delta": delta}, meter, delay_s=pause_s)
            yield _frame("content_block_stop", {"index": index}, meter, completes=self.delivers(index))
        told = {"type": "message_delta", "delta": self._ending(), "usage": self._usage(self.spent)}
        yield Frame(event(encode(told), "message_delta"), tokens=self.spent)
        yield Frame(event(encode({"type": "message_stop"}), "message_stop"), tokens=self.spent, terminal=True)

    @property
    def _id(self) -> str:
        return f"msg_01{made_up('message', self.call, length=22)}"

    def _content(self) -> list[dict[str, Any]]:
        return [self._block(index) for index in range(len(self.items))]

    def _message(self, output_tokens: int) -> dict[str, Any]:
        return {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self.exchange.conversation.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self._usage(output_tokens),
        }

    def _ending(self) -> dict[str, str | None]:
        if sequence := self.reply.stop_sequence:
            return {"stop_reason": "stop_sequence", "stop_sequence": sequence}
        return {"stop_reason": self.stop, "stop_sequence": None}

    def _usage(self, output_tokens: int) -> dict[str, Any]:
        return {
            "input_tokens": self.read,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": output_tokens,
            "service_tier": "standard",
        }

    def _block(self, index: int) -> dict[str, Any]:
        item, opening = self.items[index], self._opening(index)
        if isinstance(item, Text):
            return opening | {"text": item.text}
        if isinstance(item, Thinking):
            return opening | {"thinking": item.text, "signature": signature_of(item)}
        # The input is an object: nothing is left of arguments that max_tokens cut.
        cut = item.raw_args is not None and not self.completes(index)
        return opening if cut else opening | {"input": _input(item)}

    def _opening(self, index: int) -> dict[str, Any]:
        """Return a block before its first delta."""
        item = self.items[index]
        if isinstance(item, Text):
            return {"type": "text", "text": ""}
        if isinstance(item, Thinking):
            return {"type": "thinking", "thinking": "", "signature": ""}
        id_ = item.id or f"01{made_up('tool', self.call, index, length=22)}"
        return {"type": "tool_use", "id": f"toolu_{id_}", "name": item.name, "input": {}}


def _deltas(item: Item) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each delta with the number of characters that the model generated for it."""
    if isinstance(item, Text):
        yield from ((len(piece), {"type": "text_delta", "text": piece}) for piece in pieces(item.text))
    elif isinstance(item, Thinking):
        for piece in pieces(item.text):
            yield len(piece), {"type": "thinking_delta", "thinking": piece}
        yield 0, {"type": "signature_delta", "signature": signature_of(item)}
    else:
        yield len(item.name), {"type": "input_json_delta", "partial_json": ""}
        for piece in pieces(arguments(item.args, item.raw_args)):
            yield len(piece), {"type": "input_json_delta", "partial_json": piece}


def _frame(
    name: str, data: dict[str, Any], meter: Meter | None = None, *, delay_s: float = 0, completes: bool = False
) -> Frame:
    tokens = meter.now if meter else 0
    return Frame(event(encode({"type": name} | data), name), delay_s, tokens, completes)


def _input(item: ToolCall) -> object:
    """Return the arguments as JSON; no text is an object, and text that is no JSON is sent verbatim, as a string."""
    if item.raw_args is None:
        return dict(item.args)
    if not item.raw_args:
        return {}
    try:
        return json.loads(item.raw_args)
    except ValueError:
        return item.raw_args


class _Anthropic(Dialect):
    WIRE = "anthropic"
    PATHS = re.compile("/v1/(messages|models)(/.*)?")
    REPLIES = re.compile("/v1/messages")
    WRITER = _AnthropicWriter
    MARKS = ("anthropic-version", "x-api-key")
    STOCK = ("claude-sonnet-4-6",)
    BROKE = Refusal(
        400,
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or "
        "purchase credits.",
    )
    EXPIRED = Refusal(401, "OAuth token has expired. Please obtain a new token or refresh your existing token.")
    FRAMING = Framing(SSE, _PING)
    UNUSABLE: ClassVar[Mapping[str, Refusal]] = {"image": Refusal(400, "Could not process image")}

    refusals = staticmethod(refusals)
    whole = staticmethod(threads.rebuilt)

    def unusable(self, item: ItemKind, request: Request) -> Refusal:
        """Return the words for an item; a broken character makes the body no JSON at its place."""
        if item == "thinking":
            return bad(f"{_last_thought(request)}: Invalid `signature` in `thinking` block")
        size = len(request.body)
        place = f"line 1 column {size} (char {size - 1})"
        broken = bad(f"The request body is not valid JSON: no low surrogate in string: {place}")
        return self.UNUSABLE.get(item, broken)

    def too_long(self, overflow: Overflow, request: Request) -> Refusal:
        """Refuse with the two sizes, as in https://github.com/kortix-ai/suna/issues/217."""
        return bad(f"prompt is too long: {overflow.tokens} tokens > {overflow.window} maximum")

    def parse(self, request: Request) -> Conversation:
        document = request.document or {}
        wanted = mapped(mapped(document.get("output_config")).get("format") or document.get("output_format"))
        messages = (said for message in listed(document.get("messages")) for said in messages_in(mapped(message)))
        return Conversation(
            wire=self.WIRE,
            model=str(document.get("model", "")),
            stream=document.get("stream") is True,
            messages=system_first(text_of(document.get("system")), messages),
            tools=tuple(tool_spec(mapped(tool), "input_schema") for tool in listed(document.get("tools"))),
            max_tokens=counted(document.get("max_tokens")),
            stops=stops_in(document.get("stop_sequences")),
            schema=mapped(wanted.get("schema")) if "schema" in wanted else None,
        )

    def error(self, refusal: Refusal, request: Request) -> Response:
        kind, message = self.by_status(_ERRORS, refusal.status)
        kind, message = refusal.kind or kind, refusal.message or message
        details = {"details": {"error_code": refusal.code}} if refusal.code else {}
        error = {"type": kind, "message": message} | details
        body = {"type": "error", "error": error, "request_id": _request_id(request)}
        return Response(refusal.status, encode(body), kind, message)

    def error_event(self, refusal: Refusal, exchange: Exchange, number: int) -> bytes:
        return event(self.error(refusal, exchange.request).body, "error")

    def aside(self, request: Request, models: Models) -> Response | None:
        """Answer `GET /v1/models`, `GET /v1/models/NAME` and `POST /v1/messages/count_tokens`."""
        if request.path != "/v1/messages/count_tokens" or request.method != "POST":
            return self.listed(request, models, "/v1/models")
        document = None if request.document is None else {"max_tokens": 1} | request.document  # it is optional
        return self.counted(replace(request, document=document), models, lambda count: {"input_tokens": count})

    def models(self, models: list[dict[str, Any]]) -> dict[str, Any]:
        return {"data": models, "has_more": False, "first_id": models[0]["id"], "last_id": models[-1]["id"]}

    def model(self, name: str) -> dict[str, Any]:
        return {"type": "model", "id": name, "display_name": name, "created_at": "2025-01-01T00:00:00Z"}

    def no_model(self, name: str, request: Request) -> Refusal:
        return Refusal(404, f"model: {name}")

    def failure_headers(self, status: int, wait_s: float, now: datetime) -> list[tuple[str, str]]:
        """Return what an overloaded service and a rate limit tell clients."""
        if status not in (429, 529):
            return []
        reset = (now + timedelta(seconds=wait_s)).strftime("%Y-%m-%dT%H:%M:%SZ")
        limits = [
            (f"anthropic-ratelimit-{kind}-{name}", value)
            for kind, most, left in (("requests", "50", "0"), ("tokens", "50000", "50000"))
            for name, value in (("limit", most), ("remaining", left), ("reset", reset))
        ]
        return [("x-should-retry", "true"), *(limits if status == 429 else [])]

    def headers(self, request: Request) -> list[tuple[str, str]]:
        return [("request-id", _request_id(request))]


ANTHROPIC: Final = _Anthropic()


def _request_id(request: Request) -> str:
    return f"req_01{made_up('request', request.call, length=22)}"


def _last_thought(request: Request) -> str:
    places = [
        f"messages.{index}.content.{number}"
        for index, message in enumerate(listed((request.document or {}).get("messages")))
        for number, block in enumerate(blocks(mapped(message).get("content")))
        if is_thought(block)
    ]
    return places[-1] if places else "messages"
