"""Google's Gemini: `POST /v1beta/models/MODEL:generateContent`, and `:streamGenerateContent` as SSE or a JSON array.

Arguments are objects: a call whose `raw_args` are no object does not reach the client. As from the provider, the client
gets MALFORMED_FUNCTION_CALL with the model's words in `finishMessage`, or MAX_TOKENS if they were cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Exchange, Framing, Models, Refusal, Response, is_whole, posts_to, stop_of
from wedgehog.fake_llm.dialects.gemini.parse import ADDRESS, WIRE, field, parse  # noqa: F401  a verb
from wedgehog.fake_llm.dialects.gemini.validate import NO_KEY, no_model, refuse
from wedgehog.fake_llm.frame import SSE, Frame, encode
from wedgehog.fake_llm.grapheme import pieces
from wedgehog.fake_llm.http_request import LARGEST_BODY
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.reply import Reply, Text, Thinking, ToolCall
from wedgehog.fake_llm.request import Request, is_known, model_asked
from wedgehog.fake_llm.usage import Meter, args_of, arguments, input_tokens, tokens_in, words

asks_for_reply: Final = posts_to(
    re.compile(r"/v1\w*/(?:[^:]*/)?(?:models|tunedModels)/[^/:]+:(?:generateContent|streamGenerateContent)")
)
PATHS: Final = re.compile(r"/v1/models(/.*)?|/v1\w+/.*|/v1/(projects|publishers|tunedModels)/.*")
MARKS: Final = ("x-goog-api-key", "x-goog-api-client", "key")
BROKE: Final = Refusal(
    429,
    "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your "
    "project and billing.",
)

TOO_LARGE: Final = Refusal(400, f"Request payload size exceeds the limit: {LARGEST_BODY} bytes.")

_STOCK: Final = ("gemini-2.5-flash",)
_ARRAY_TYPE: Final = "application/json; charset=UTF-8"
# Official clients read comments as data, and skip an empty line.
_EVENTS: Final = Framing(SSE, b"\r\n")
_ARRAY: Final = Framing(_ARRAY_TYPE, b"\r\n", b"[", b",\r\n", b"]")
_STOPS: Final = {"end": "STOP", "tool": "STOP", "max_tokens": "MAX_TOKENS", "refusal": "SAFETY"}
_MALFORMED: Final = "MALFORMED_FUNCTION_CALL"
_ERRORS: Final = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: (
        "UNAUTHENTICATED",
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid "
        "authentication credential.",
    ),
    403: ("PERMISSION_DENIED", "The caller does not have permission"),
    404: ("NOT_FOUND", "Requested entity was not found."),
    409: ("ABORTED", "The operation was aborted."),
    413: ("INVALID_ARGUMENT", TOO_LARGE.message),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    499: ("CANCELLED", "The operation was cancelled."),
    500: ("INTERNAL", "An internal error has occurred. Please retry or report in https://ai.google.dev/support"),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
    529: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}


def render(reply: Reply, exchange: Exchange) -> bytes:
    """Write a whole response with one candidate."""
    parts = [part for index in range(len(reply.items)) for part in _parts(reply, index, exchange, whole=True)]
    return encode(_chunk(parts, exchange, exchange.billed.output_tokens, reply, _ending(reply)))


def stream(reply: Reply, exchange: Exchange) -> Iterator[Frame]:
    """Write responses with a piece of the candidate each, then one with the finish reason."""
    spent = exchange.billed.output_tokens
    meter = Meter(spent, sum(len(words(item)) for item in reply.items))
    for index, item in enumerate(reply.items):
        parts = list(_parts(reply, index, exchange, whole=False))
        if not parts:
            meter.add(len(words(item)))
        pace_s = item.pace_ms / 1000 if isinstance(item, Text) else 0
        for number, part in enumerate(parts, start=1):
            meter.add(len(words(item)) if isinstance(item, ToolCall) else len(part["text"]))
            completes = number == len(parts) and is_whole(reply, index) and not isinstance(item, Thinking)
            data = encode(_chunk([part], exchange, meter.now, reply))
            yield Frame(_framed(data, exchange), pace_s, meter.now, completes)
    last = encode(_chunk([{"text": ""}], exchange, spent, reply, _ending(reply)))
    yield Frame(_framed(last, exchange), tokens=spent, terminal=True)


def framing(exchange: Exchange) -> Framing:
    """Return the framing of responses: events with `alt=sse`, else elements of an array."""
    return _EVENTS if _as_events(exchange.request) else _ARRAY


def error(refusal: Refusal, request: Request) -> Response:
    """Write `{"error": {"code", "message", "status"}}`, in an array if the reply is one."""
    status, message = _ERRORS.get(refusal.status, _ERRORS[500 if refusal.status >= 500 else 400])
    status, message = refusal.kind or status, refusal.message or message
    body = {"error": {"code": refusal.status, "message": message, "status": status}}
    in_array = request.path.endswith(":streamGenerateContent") and not _as_events(request)
    return Response(refusal.status, encode([body] if in_array else body), status, message, _ARRAY_TYPE)


def error_event(refusal: Refusal, exchange: Exchange, number: int) -> bytes:
    """Write an error in place of a response."""
    told = error(refusal, exchange.request).body
    return _framed(told, exchange) if _as_events(exchange.request) else told[1:-1]


def aside(request: Request, models: Models) -> Response | None:
    """Answer `GET …/models`, `GET …/models/NAME` and `POST …/models/NAME:countTokens`."""
    address = ADDRESS.fullmatch(request.path)
    if address and address[3] == "countTokens" and request.method == "POST":
        return _counted(request, models)
    version = request.path.strip("/").partition("/")[0]
    name = model_asked(request, f"/{version}/models")
    if name is None:
        return None
    if not request.key:
        return error(NO_KEY, request)
    if name and not is_known(name, models):
        return error(no_model(name, version), request)
    if name:
        return Response(200, encode(_model(name)))
    return Response(200, encode({"models": [_model(one) for one in models or _STOCK]}))


def headers(request: Request) -> list[tuple[str, str]]:
    """Return no headers: a reply's id is in its body."""
    return []


def _as_events(request: Request) -> bool:
    return request.query.get("alt") == "sse"


def _framed(data: bytes, exchange: Exchange) -> bytes:
    return b"data: " + data + b"\r\n\r\n" if _as_events(exchange.request) else data


def _parts(reply: Reply, index: int, exchange: Exchange, *, whole: bool) -> Iterator[dict[str, Any]]:
    """Yield an item's parts: one, the pieces of a streamed text, or none if the provider hides the item."""
    item = reply.items[index]
    if isinstance(item, ToolCall):
        args = args_of(item)
        if args is not None:
            yield _called(item, args, index, exchange) | _signature(reply, index, exchange)
    elif isinstance(item, Text) or _shows_thoughts(exchange):
        thought = {"thought": True} if isinstance(item, Thinking) else {}
        yield from ({"text": piece, **thought} for piece in ([item.text] if whole else pieces(item.text)))


def _called(item: ToolCall, args: dict[str, Any], index: int, exchange: Exchange) -> dict[str, Any]:
    id_ = item.id or made_up("tool", exchange.request.call, index, length=12)
    return {"functionCall": {"id": f"call_{id_}", "name": item.name, "args": args}}


def _signature(reply: Reply, index: int, exchange: Exchange) -> dict[str, Any]:
    """Sign the first of parallel calls; newer models require the signature back."""
    if index != next(n for n, item in enumerate(reply.items) if isinstance(item, ToolCall)):
        return {}
    return {"thoughtSignature": made_up("signature", exchange.request.call, length=64)}


def _shows_thoughts(exchange: Exchange) -> bool:
    config = field(exchange.request.document, "generationConfig")
    return field(field(config, "thinkingConfig"), "includeThoughts") is True


def _ending(reply: Reply) -> dict[str, Any]:
    broken = [item for item in reply.items if isinstance(item, ToolCall) and args_of(item) is None]
    if broken and reply.stop != "max_tokens":
        said = f"Malformed function call: {broken[0].name}({arguments({}, broken[0].raw_args)})"
        return {"finishReason": _MALFORMED, "finishMessage": said}
    return {"finishReason": _STOPS[stop_of(reply)]}


def _chunk(
    parts: list[dict[str, Any]],
    exchange: Exchange,
    output_tokens: int,
    reply: Reply,
    ending: dict[str, Any] | None = None,
) -> dict[str, Any]:
    candidate = {"content": {"parts": parts, "role": "model"}, **(ending or {}), "index": 0}
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(reply, exchange, output_tokens),
        "modelVersion": exchange.conversation.model,
        "responseId": made_up("message", exchange.request.call, length=22),
    }


def _usage(reply: Reply, exchange: Exchange, output_tokens: int) -> dict[str, Any]:
    asked = exchange.billed.input_tokens
    thought = min(sum(tokens_in(item.text) for item in reply.items if isinstance(item, Thinking)), output_tokens)
    return {
        "promptTokenCount": asked,
        "candidatesTokenCount": output_tokens - thought,
        "totalTokenCount": asked + output_tokens,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": asked}],
        **({"thoughtsTokenCount": thought} if thought else {}),
    }


def _counted(request: Request, models: Models) -> Response:
    """Count a request's tokens; the request may be inside `generateContentRequest`."""
    inner = field(request.document, "generateContentRequest")
    document = inner if isinstance(inner, dict) else request.document
    asked = replace(request, document=document)
    refusal = refuse(asked, models)
    if refusal:
        return error(refusal, request)
    count = input_tokens(parse(asked))
    details = [{"modality": "TEXT", "tokenCount": count}]
    return Response(200, encode({"totalTokens": count, "promptTokensDetails": details}))


def _model(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "version": "001",
        "displayName": name,
        "description": "",
        "inputTokenLimit": 1048576,
        "outputTokenLimit": 65536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }
