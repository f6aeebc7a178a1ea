"""OpenAI's chat completions: `POST /v1/chat/completions`, streamed and not, with `n` choices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.fake_llm.dialects.base import Exchange, Refusal, Response, is_whole, stop_of
from wedgehog.fake_llm.dialects.openai_chat_history import refuse
from wedgehog.fake_llm.frame import Frame
from wedgehog.fake_llm.grapheme import pieces
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.reply import Reply, Text, Thinking, ToolCall
from wedgehog.fake_llm.request import copies, listed, mapped, text_of
from wedgehog.fake_llm.sse import encode, event
from wedgehog.fake_llm.usage import Meter, arguments, tokens_in, words

__all__ = ["ERROR_EVENT", "PATH", "PING", "REQUEST_ID", "WIRE", "error", "parse", "refuse", "render", "stream"]

WIRE: Final = "openai-chat"
PATH: Final = "/v1/chat/completions"
REQUEST_ID: Final = "x-request-id"
PING: Final = b": ping\n\n"
ERROR_EVENT: Final = ""

_ROLES: Final = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool"}
_STOPS: Final = {"end": "stop", "tool": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
_QUOTA: Final = "insufficient_quota"
_ERRORS: Final[dict[int, tuple[str, str | None, str]]] = {
    400: ("invalid_request_error", None, "Invalid request."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided."),
    403: ("invalid_request_error", "unsupported_country_region_territory", "Country or region not supported."),
    404: ("invalid_request_error", None, "Not found."),
    413: ("invalid_request_error", None, "Request body too large."),
    429: ("requests", "rate_limit_exceeded", "Rate limit reached for requests. Please try again later."),
    500: ("server_error", None, "The server had an error while processing your request. Sorry about that!"),
    503: ("service_unavailable", None, "The engine is currently overloaded, please try again later."),
}


def parse(document: dict[str, Any]) -> Conversation:
    """Read a request's body."""
    limit = document.get("max_completion_tokens", document.get("max_tokens"))
    return Conversation(
        wire=WIRE,
        model=str(document.get("model", "")),
        stream=document.get("stream") is True,
        messages=tuple(_seen(mapped(message)) for message in listed(document.get("messages"))),
        tools=tuple(_tool(mapped(mapped(tool).get("function"))) for tool in listed(document.get("tools"))),
        max_tokens=limit if isinstance(limit, int) else None,
        schema=_schema(mapped(document.get("response_format"))),
    )


def render(reply: Reply, exchange: Exchange) -> bytes:
    """Write a whole completion."""
    choices = [
        {
            "index": choice,
            "message": _message(reply, choice, exchange),
            "logprobs": None,
            "finish_reason": _STOPS[stop_of(reply)],
        }
        for choice in range(copies(exchange.request.document or {}))
    ]
    body = _envelope("chat.completion", exchange)
    return encode(body | {"choices": choices, "usage": _usage(reply, exchange)})


def stream(reply: Reply, exchange: Exchange) -> Iterator[Frame]:
    """Write chunks: the role, then pieces, the finish reason, the usage if asked for, and `[DONE]`."""
    document = exchange.request.document or {}
    count = copies(document)
    told = mapped(document.get("stream_options")).get("include_usage") is True
    extra = {"usage": None} if told else {}
    spent = exchange.billed.output_tokens
    meter = Meter(spent, count * sum(len(words(item)) for item in reply.items))
    body = _envelope("chat.completion.chunk", exchange)
    for choice in range(count):
        for delta, frame in _deltas(reply, choice, exchange, meter):
            piece = {"index": choice, "delta": delta, "logprobs": None, "finish_reason": None}
            data = event(encode(body | {"choices": [piece]} | extra))
            yield Frame(data, frame.delay_s, frame.tokens, frame.completes)
        last = {"index": choice, "delta": {}, "logprobs": None, "finish_reason": _STOPS[stop_of(reply)]}
        tokens = spent if choice == count - 1 else meter.now
        yield Frame(event(encode(body | {"choices": [last]} | extra)), tokens=tokens)
    if told:
        yield Frame(event(encode(body | {"choices": [], "usage": _usage(reply, exchange)})), tokens=spent)
    yield Frame(event(b"[DONE]"), tokens=spent, terminal=True)


def error(refusal: Refusal, request_id: str) -> Response:
    """Write `{"error": {"message", "type", "param", "code"}}`."""
    kind, code, message = _ERRORS.get(refusal.status, _ERRORS[500 if refusal.status >= 500 else 400])
    if refusal.kind == _QUOTA:
        code, message = _QUOTA, "You exceeded your current quota, please check your plan and billing details."
    elif refusal.kind or refusal.param or refusal.code:
        code = refusal.code
    kind, message = refusal.kind or kind, refusal.message or message
    body = {"error": {"message": message, "type": kind, "param": refusal.param, "code": code}}
    return Response(refusal.status, encode(body), kind, message)


def _seen(message: dict[str, Any]) -> Message:
    role = _ROLES.get(str(message.get("role")), "user")
    text = text_of(message.get("content"))
    if role == "tool":
        return Message("tool", tool_results=(ToolResultSeen(str(message.get("tool_call_id", "")), text),))
    if role == "assistant":
        calls = (mapped(call) for call in listed(message.get("tool_calls")))
        return Message("assistant", text, tuple(_call(call) for call in calls))
    return Message("system" if role == "system" else "user", text)


def _call(call: dict[str, Any]) -> ToolCallSeen:
    function = mapped(call.get("function"))
    return ToolCallSeen(str(call.get("id", "")), str(function.get("name", "")), str(function.get("arguments", "")))


def _tool(function: dict[str, Any]) -> ToolSpec:
    schema = mapped(function.get("parameters"))
    return ToolSpec(str(function.get("name", "")), str(function.get("description", "")), schema)


def _schema(wanted: dict[str, Any]) -> dict[str, Any] | None:
    if wanted.get("type") == "json_object":
        return {"type": "object"}
    return mapped(mapped(wanted.get("json_schema")).get("schema")) if "json_schema" in wanted else None


def _envelope(kind: str, exchange: Exchange) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{made_up('message', exchange.request.call, length=29)}",
        "object": kind,
        "created": exchange.created_s,
        "model": exchange.conversation.model,
        "service_tier": "default",
        "system_fingerprint": f"fp_{made_up('model', exchange.conversation.model, length=10).lower()}",
    }


def _message(reply: Reply, choice: int, exchange: Exchange) -> dict[str, Any]:
    texts = [item.text for item in reply.items if isinstance(item, Text)]
    calls = [
        _called(item, index, choice, exchange) | {"function": _function(item)}
        for index, item in enumerate(reply.items)
        if isinstance(item, ToolCall)
    ]
    content = "".join(texts) if texts or not calls else None
    message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None, "annotations": []}
    return message | ({"tool_calls": calls} if calls else {})


def _called(item: ToolCall, index: int, choice: int, exchange: Exchange) -> dict[str, Any]:
    id_ = item.id or made_up("tool", exchange.request.call, index, choice, length=24)
    return {"id": f"call_{id_}{f'_{choice}' if item.id and choice else ''}", "type": "function"}


def _function(item: ToolCall) -> dict[str, Any]:
    return {"name": item.name, "arguments": arguments(item.args, item.raw_args)}


def _deltas(reply: Reply, choice: int, exchange: Exchange, meter: Meter) -> Iterator[tuple[dict[str, Any], Frame]]:
    """Yield each delta of a choice, with a frame that says when it comes and what it delivers."""
    opens_with_text = not reply.items or any(isinstance(item, Text) for item in reply.items)
    role = {"role": "assistant", "content": "" if opens_with_text else None, "refusal": None}
    yield role, Frame(b"", tokens=meter.now)
    place = 0
    for index, item in enumerate(reply.items):
        whole = is_whole(reply, index)
        if isinstance(item, Thinking):
            meter.add(len(item.text))
        elif isinstance(item, Text):
            yield from _text(item, whole, meter)
        else:
            yield from _tool_call(item, place, _called(item, index, choice, exchange), whole, meter)
            place += 1


def _text(item: Text, whole: bool, meter: Meter) -> Iterator[tuple[dict[str, Any], Frame]]:
    parts = pieces(item.text)
    for number, part in enumerate(parts, start=1):
        frame = Frame(b"", item.pace_ms / 1000, meter.add(len(part)), whole and number == len(parts))
        yield {"content": part}, frame


def _tool_call(
    item: ToolCall, place: int, called: dict[str, Any], whole: bool, meter: Meter
) -> Iterator[tuple[dict[str, Any], Frame]]:
    parts = pieces(arguments(item.args, item.raw_args))
    opening = {"index": place, **called, "function": {"name": item.name, "arguments": ""}}
    yield {"tool_calls": [opening]}, Frame(b"", 0, meter.add(len(item.name)), whole and not parts)
    for number, part in enumerate(parts, start=1):
        delta = {"tool_calls": [{"index": place, "function": {"arguments": part}}]}
        yield delta, Frame(b"", 0, meter.add(len(part)), whole and number == len(parts))


def _usage(reply: Reply, exchange: Exchange) -> dict[str, Any]:
    billed = exchange.billed
    thought = sum(tokens_in(item.text) for item in reply.items if isinstance(item, Thinking))
    return {
        "prompt_tokens": billed.input_tokens,
        "completion_tokens": billed.output_tokens,
        "total_tokens": billed.input_tokens + billed.output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": min(thought, billed.output_tokens),
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
