"""Anthropic's Messages API: `POST /v1/messages`, streamed and not.

Events carry their name twice, in an `event:` line and as `type`; official clients drop those without the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen
from wedgehog.fake_llm.dialects.anthropic.validate import TOO_LARGE, refuse  # noqa: F401  a verb
from wedgehog.fake_llm.dialects.base import Exchange, Framing, Models, Refusal, Response, is_whole, posts_to, stop_of
from wedgehog.fake_llm.frame import SSE, Frame, encode, event
from wedgehog.fake_llm.grapheme import pieces
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.reply import Item, Reply, Text, Thinking, ToolCall
from wedgehog.fake_llm.request import (
    Request,
    blocks,
    counted,
    is_known,
    listed,
    mapped,
    model_asked,
    text_of,
    tool_spec,
)
from wedgehog.fake_llm.usage import Meter, arguments, input_tokens, words

WIRE: Final = "anthropic"
asks_for_reply: Final = posts_to(re.compile("/v1/messages"))
PATHS: Final = re.compile("/v1/(messages|models)(/.*)?")
MARKS: Final = ("anthropic-version", "x-api-key")
BROKE: Final = Refusal(
    400,
    "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase "
    "credits.",
)

_COUNT: Final = "/v1/messages/count_tokens"
_MODELS: Final = "/v1/models"
_STOCK: Final = ("claude-sonnet-4-6",)
_SINCE: Final = "2025-01-01T00:00:00Z"
_PING: Final = event(b'{"type":"ping"}', "ping")
_FRAMING: Final = Framing(SSE, _PING)

_STOPS: Final = {"end": "end_turn", "tool": "tool_use", "max_tokens": "max_tokens", "refusal": "refusal"}
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


def parse(request: Request) -> Conversation:
    """Read a request's body."""
    document = request.document or {}
    wanted = mapped(mapped(document.get("output_config")).get("format") or document.get("output_format"))
    system = text_of(document.get("system"))
    messages = [said for message in listed(document.get("messages")) for said in _messages(mapped(message))]
    return Conversation(
        wire=WIRE,
        model=str(document.get("model", "")),
        stream=document.get("stream") is True,
        messages=(*([Message("system", system)] if system else []), *messages),
        tools=tuple(tool_spec(mapped(tool), "input_schema") for tool in listed(document.get("tools"))),
        max_tokens=counted(document.get("max_tokens")),
        schema=mapped(wanted.get("schema")) if "schema" in wanted else None,
    )


def render(reply: Reply, exchange: Exchange) -> bytes:
    """Write a whole message."""
    content = [_block(reply, index, exchange) for index in range(len(reply.items))]
    usage = _usage(exchange, exchange.billed.output_tokens)
    return encode(_message(exchange) | {"content": content, "stop_reason": _STOPS[stop_of(reply)], "usage": usage})


def stream(reply: Reply, exchange: Exchange) -> Iterator[Frame]:
    """Write a message as events, from `message_start` to `message_stop`, with the provider's ping."""
    meter = Meter(exchange.billed.output_tokens, sum(len(words(item)) for item in reply.items))
    started = _message(exchange) | {"usage": _usage(exchange, min(1, exchange.billed.output_tokens))}
    yield _frame("message_start", {"message": started})
    if not reply.items:
        yield Frame(_PING)
    for index, item in enumerate(reply.items):
        block = _opening(item, index, exchange)
        yield _frame("content_block_start", {"index": index, "content_block": block}, meter)
        if index == 0:
            yield Frame(_PING)
        pace_s = item.pace_ms / 1000 if isinstance(item, Text) else 0
        for chars, delta in _deltas(item):
            meter.add(chars)
            yield _frame("content_block_delta", {"index": index, "delta": delta}, meter, delay_s=pace_s)
        whole = is_whole(reply, index) and not isinstance(item, Thinking)
        yield _frame("content_block_stop", {"index": index}, meter, completes=whole)
    yield from _ending(reply, exchange)


def framing(exchange: Exchange) -> Framing:
    """Return SSE framing; pings are events."""
    return _FRAMING


def error(refusal: Refusal, request: Request) -> Response:
    """Write `{"type": "error", "error": {"type", "message"}, "request_id"}`."""
    kind, message = _ERRORS.get(refusal.status, _ERRORS[500 if refusal.status >= 500 else 400])
    kind, message = refusal.kind or kind, refusal.message or message
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": _request_id(request)}
    return Response(refusal.status, encode(body), kind, message)


def error_event(refusal: Refusal, exchange: Exchange, number: int) -> bytes:
    """Write an event called `error`."""
    return event(error(refusal, exchange.request).body, "error")


def aside(request: Request, models: Models) -> Response | None:
    """Answer `GET /v1/models`, `GET /v1/models/NAME` and `POST /v1/messages/count_tokens`."""
    if request.path == _COUNT and request.method == "POST":
        return _counted(request, models)
    name = model_asked(request, _MODELS)
    if name is None:
        return None
    if not request.key:
        return error(Refusal(401), request)
    if name and not is_known(name, models):
        return error(Refusal(404, f"model: {name}"), request)
    if name:
        return Response(200, encode(_model(name)))
    known = models or _STOCK
    found = {"data": [_model(one) for one in known], "has_more": False, "first_id": known[0], "last_id": known[-1]}
    return Response(200, encode(found))


def headers(request: Request) -> list[tuple[str, str]]:
    """Return the reply's id."""
    return [("request-id", _request_id(request))]


def _request_id(request: Request) -> str:
    return f"req_01{made_up('request', request.call, length=22)}"


def _counted(request: Request, models: Models) -> Response:
    """Count a request's tokens; `max_tokens` is optional."""
    document = None if request.document is None else {"max_tokens": 1} | request.document
    asked = replace(request, document=document)
    refusal = refuse(asked, models)
    return error(refusal, request) if refusal else Response(200, encode({"input_tokens": input_tokens(parse(asked))}))


def _model(name: str) -> dict[str, Any]:
    return {"type": "model", "id": name, "display_name": name, "created_at": _SINCE}


def _messages(message: dict[str, Any]) -> Iterator[Message]:
    content = blocks(message.get("content"))
    text = text_of([block for block in content if block.get("type", "text") == "text"])
    if message.get("role") == "assistant":
        calls = (block for block in content if block.get("type") == "tool_use")
        yield Message("assistant", text, tuple(_call(block) for block in calls))
        return
    results = tuple(_result(block) for block in content if block.get("type") == "tool_result")
    if results:
        yield Message("tool", tool_results=results)
    if text or not results:
        yield Message("system" if message.get("role") == "system" else "user", text)


def _call(block: dict[str, Any]) -> ToolCallSeen:
    given = json.dumps(block.get("input"), ensure_ascii=False)
    return ToolCallSeen(str(block.get("id", "")), str(block.get("name", "")), given)


def _result(block: dict[str, Any]) -> ToolResultSeen:
    return ToolResultSeen(
        str(block.get("tool_use_id", "")), text_of(block.get("content")), block.get("is_error") is True
    )


def _message(exchange: Exchange) -> dict[str, Any]:
    return {
        "id": f"msg_01{made_up('message', exchange.request.call, length=22)}",
        "type": "message",
        "role": "assistant",
        "model": exchange.conversation.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _usage(exchange: Exchange, output_tokens: int) -> dict[str, Any]:
    return {
        "input_tokens": exchange.billed.input_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }


def _block(reply: Reply, index: int, exchange: Exchange) -> dict[str, Any]:
    item = reply.items[index]
    if isinstance(item, Text):
        return {"type": "text", "text": item.text}
    if isinstance(item, Thinking):
        return {"type": "thinking", "thinking": item.text, "signature": _signature(item)}
    opening = _opening(item, index, exchange)
    # The input is an object: nothing is left of arguments that max_tokens cut.
    cut = item.raw_args is not None and not is_whole(reply, index)
    return opening if cut else opening | {"input": _input(item)}


def _opening(item: Item, index: int, exchange: Exchange) -> dict[str, Any]:
    if isinstance(item, Text):
        return {"type": "text", "text": ""}
    if isinstance(item, Thinking):
        return {"type": "thinking", "thinking": "", "signature": ""}
    id_ = item.id or f"01{made_up('tool', exchange.request.call, index, length=22)}"
    return {"type": "tool_use", "id": f"toolu_{id_}", "name": item.name, "input": {}}


def _deltas(item: Item) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each delta with the number of characters that the model generated for it."""
    if isinstance(item, Text):
        yield from ((len(piece), {"type": "text_delta", "text": piece}) for piece in pieces(item.text))
    elif isinstance(item, Thinking):
        for piece in pieces(item.text):
            yield len(piece), {"type": "thinking_delta", "thinking": piece}
        yield 0, {"type": "signature_delta", "signature": _signature(item)}
    else:
        yield len(item.name), {"type": "input_json_delta", "partial_json": ""}
        for piece in pieces(arguments(item.args, item.raw_args)):
            yield len(piece), {"type": "input_json_delta", "partial_json": piece}


def _ending(reply: Reply, exchange: Exchange) -> Iterator[Frame]:
    spent = exchange.billed.output_tokens
    delta = {"stop_reason": _STOPS[stop_of(reply)], "stop_sequence": None}
    told = {"type": "message_delta", "delta": delta, "usage": _usage(exchange, spent)}
    yield Frame(event(encode(told), "message_delta"), tokens=spent)
    yield Frame(event(encode({"type": "message_stop"}), "message_stop"), tokens=spent, terminal=True)


def _frame(
    name: str, data: dict[str, Any], meter: Meter | None = None, *, delay_s: float = 0, completes: bool = False
) -> Frame:
    tokens = meter.now if meter else 0
    return Frame(event(encode({"type": name} | data), name), delay_s, tokens, completes)


def _signature(item: Thinking) -> str:
    return f"Eq{made_up('signature', item.text, length=62)}"


def _input(item: ToolCall) -> object:
    """Return the arguments as JSON; text that is no JSON is sent verbatim, as a string."""
    if item.raw_args is None:
        return dict(item.args)
    try:
        return json.loads(item.raw_args)
    except ValueError:
        return item.raw_args
