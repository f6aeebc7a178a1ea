"""OpenAI's chat completions: `POST /v1/chat/completions`, streamed and not, with `n` choices."""

from __future__ import annotations

import hashlib
import re
import struct
from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, Final

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen
from wedgehog.fake_llm.dialects.base import Exchange, Framing, Models, Refusal, Response, is_whole, posts_to, stop_of
from wedgehog.fake_llm.dialects.openai_chat.validate import MOST_COPIES, no_model, refuse  # noqa: F401  a verb
from wedgehog.fake_llm.dialects.openai_common import BROKE, NO_KEY, TOO_LARGE, error, headers, missing, unreadable  # noqa: F401  verbs
from wedgehog.fake_llm.frame import SSE, Frame, encode, event
from wedgehog.fake_llm.grapheme import pieces
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.reply import Reply, Text, Thinking, ToolCall
from wedgehog.fake_llm.request import Request, counted, is_known, listed, mapped, model_asked, text_of, tool_spec
from wedgehog.fake_llm.usage import Meter, arguments, tokens_in, words

WIRE: Final = "openai-chat"
asks_for_reply: Final = posts_to(re.compile("/v1/chat/completions"))
PATHS: Final = re.compile("/v1/(chat|models|embeddings)(/.*)?")
MARKS: Final = ()

_ROLES: Final = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool"}
_STOPS: Final = {"end": "stop", "tool": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
_MODELS: Final = "/v1/models"
_EMBEDDINGS: Final = "/v1/embeddings"
_STOCK: Final = ("gpt-5",)
_DIMENSIONS: Final = 1536
_MOST_DIMENSIONS: Final = 3072
_SINCE_S: Final = 1735689600
_FRAMING: Final = Framing(SSE, b": ping\n\n")


def parse(request: Request) -> Conversation:
    """Read a request's body."""
    document = request.document or {}
    limits = [counted(document.get(name)) for name in ("max_completion_tokens", "max_tokens")]
    return Conversation(
        wire=WIRE,
        model=str(document.get("model", "")),
        stream=document.get("stream") is True,
        messages=tuple([_seen(mapped(message)) for message in listed(document.get("messages"))]),
        tools=tuple([tool_spec(mapped(mapped(tool).get("function"))) for tool in listed(document.get("tools"))]),
        max_tokens=next((limit for limit in limits if limit is not None), None),
        schema=_schema(mapped(document.get("response_format"))),
        copies=min(max(1, counted(document.get("n")) or 1), MOST_COPIES),
    )


def render(reply: Reply, exchange: Exchange) -> bytes:
    """Write a whole completion."""
    choices = [
        {
            "index": choice,
            "message": _message(reply, choice, exchange),
            "logprobs": None,
            "finish_reason": _finish(reply),
        }
        for choice in range(exchange.conversation.copies)
    ]
    body = _envelope("chat.completion", exchange)
    return encode(body | {"choices": choices, "usage": _usage(reply, exchange)})


def stream(reply: Reply, exchange: Exchange) -> Iterator[Frame]:
    """Write chunks: the role, the pieces, the finish reason, the usage if asked for, and `[DONE]`."""
    document = exchange.request.document or {}
    count = exchange.conversation.copies
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
        last = {"index": choice, "delta": {}, "logprobs": None, "finish_reason": _finish(reply)}
        tokens = spent if choice == count - 1 else meter.now
        yield Frame(event(encode(body | {"choices": [last]} | extra)), tokens=tokens)
    if told:
        yield Frame(event(encode(body | {"choices": [], "usage": _usage(reply, exchange)})), tokens=spent)
    yield Frame(event(b"[DONE]"), tokens=spent, terminal=True)


def framing(exchange: Exchange) -> Framing:
    """Return SSE framing; pings are comments."""
    return _FRAMING


def error_event(refusal: Refusal, exchange: Exchange, number: int) -> bytes:
    """Write an error as an event."""
    return event(error(refusal, exchange.request).body)


def aside(request: Request, models: Models) -> Response | None:
    """Answer `GET /v1/models`, `GET /v1/models/NAME` and `POST /v1/embeddings`."""
    if request.path == _EMBEDDINGS and request.method == "POST":
        return _embeddings(request)
    name = model_asked(request, _MODELS)
    if name is None:
        return None
    if not request.key:
        return error(NO_KEY, request)
    if name and not is_known(name, models):
        return error(no_model(name), request)
    if name:
        return Response(200, encode(_model(name)))
    return Response(200, encode({"object": "list", "data": [_model(one) for one in models or _STOCK]}))


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _SINCE_S, "owned_by": "wedgehog"}


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
        "system_fingerprint": f"fp_{made_up('model', exchange.conversation.model, length=10, small=True)}",
    }


def _message(reply: Reply, choice: int, exchange: Exchange) -> dict[str, Any]:
    texts = [item.text for item in reply.items if isinstance(item, Text)]
    calls = [
        _called(item, index, choice, exchange) | {"function": _function(item)}
        for index, item in enumerate(reply.items)
        if isinstance(item, ToolCall)
    ]
    content = "".join(texts) if texts or not calls else None
    said = {"content": None, "refusal": content} if _refuses(reply) else {"content": content, "refusal": None}
    message: dict[str, Any] = {"role": "assistant", **said, "annotations": []}
    return message | ({"tool_calls": calls} if calls else {})


def _called(item: ToolCall, index: int, choice: int, exchange: Exchange) -> dict[str, Any]:
    id_ = item.id or made_up("tool", exchange.request.call, index, choice, length=24)
    return {"id": f"call_{id_}{f'_{choice}' if item.id and choice else ''}", "type": "function"}


def _function(item: ToolCall) -> dict[str, Any]:
    return {"name": item.name, "arguments": arguments(item.args, item.raw_args)}


def _deltas(reply: Reply, choice: int, exchange: Exchange, meter: Meter) -> Iterator[tuple[dict[str, Any], Frame]]:
    """Yield each delta of a choice, with a frame for its delay and tokens."""
    opens_with_text = not reply.items or (_says(reply) and not _refuses(reply))
    key = "refusal" if _refuses(reply) else "content"
    role = {"role": "assistant", "content": "" if opens_with_text else None, "refusal": None}
    yield role, Frame(b"", tokens=meter.now)
    place = 0
    for index, item in enumerate(reply.items):
        whole = is_whole(reply, index)
        if isinstance(item, Thinking):
            meter.add(len(item.text))
        elif isinstance(item, Text):
            yield from _text(item, key, whole, meter)
        else:
            yield from _tool_call(item, place, _called(item, index, choice, exchange), whole, meter)
            place += 1


def _text(item: Text, key: str, whole: bool, meter: Meter) -> Iterator[tuple[dict[str, Any], Frame]]:
    parts = pieces(item.text)
    for number, part in enumerate(parts, start=1):
        frame = Frame(b"", item.pace_ms / 1000, meter.add(len(part)), whole and number == len(parts))
        yield {key: part}, frame


def _tool_call(
    item: ToolCall, place: int, called: dict[str, Any], whole: bool, meter: Meter
) -> Iterator[tuple[dict[str, Any], Frame]]:
    parts = pieces(arguments(item.args, item.raw_args))
    opening = {"index": place, **called, "function": {"name": item.name, "arguments": ""}}
    yield {"tool_calls": [opening]}, Frame(b"", 0, meter.add(len(item.name)), whole and not parts)
    for number, part in enumerate(parts, start=1):
        delta = {"tool_calls": [{"index": place, "function": {"arguments": part}}]}
        yield delta, Frame(b"", 0, meter.add(len(part)), whole and number == len(parts))


def _says(reply: Reply) -> bool:
    return any(isinstance(item, Text) for item in reply.items)


def _refuses(reply: Reply) -> bool:
    """Return True for the model's own refusal; a refusal without text is a filter's."""
    return stop_of(reply) == "refusal" and _says(reply)


def _finish(reply: Reply) -> str:
    return "stop" if _refuses(reply) else _STOPS[stop_of(reply)]


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


def _embeddings(request: Request) -> Response:
    """Answer `POST /v1/embeddings` with a vector for each text."""
    refusal = next(_unembeddable(request), None)
    if refusal:
        return error(refusal, request)
    document = request.document or {}
    texts = _texts(document["input"])
    size = min(max(1, counted(document.get("dimensions")) or _DIMENSIONS), _MOST_DIMENSIONS)
    packed = document.get("encoding_format") == "base64"
    vectors = [
        {"object": "embedding", "index": index, "embedding": _told(text, size, packed)}
        for index, text in enumerate(texts)
    ]
    spent = max(1, sum(map(tokens_in, texts)))
    usage = {"prompt_tokens": spent, "total_tokens": spent}
    return Response(200, encode({"object": "list", "data": vectors, "model": document["model"], "usage": usage}))


def _unembeddable(request: Request) -> Iterator[Refusal]:
    yield from unreadable(request)
    for name in ("model", "input"):
        if not (request.document or {}).get(name):
            yield missing(name)


def _texts(given: Any) -> Sequence[str]:
    """Return the texts of `input`: one, several, or given as tokens."""
    if not isinstance(given, list) or all(isinstance(token, int) for token in given):
        return [str(given)]
    return [str(text) for text in given]


def _told(text: str, size: int, packed: bool) -> str | list[float]:
    data = hashlib.shake_128(text.encode("utf-8", errors="replace")).digest(size)
    vector = [(byte - 127.5) / (73.9 * size**0.5) for byte in data]
    return b64encode(struct.pack(f"<{size}f", *vector)).decode() if packed else vector
