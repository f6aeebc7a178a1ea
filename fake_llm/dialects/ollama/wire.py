"""Ollama: `POST /api/chat` and `/api/generate`, streamed unless asked not to, one JSON object a line.

A call arrives whole, with its arguments as an object. A call with other arguments arrives as text, and so does every
call under `/api/generate`, which has no tools.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from wedgehog.fake_llm.dialects.base import Exchange, Framing, Models, Refusal, Response, is_whole, posts_to, stop_of
from wedgehog.fake_llm.dialects.ollama.validate import CHAT, WIRE, no_model, only_loads, parse, refuse  # noqa: F401  verbs
from wedgehog.fake_llm.frame import Frame, encode
from wedgehog.fake_llm.grapheme import pieces
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.reply import Reply, Text, Thinking, ToolCall
from wedgehog.fake_llm.request import Request, is_known
from wedgehog.fake_llm.usage import Meter, args_of, arguments, words

PATHS: Final = re.compile("/api/.*")
MARKS: Final = ()
BROKE: Final = Refusal(402, "you have used up your prepaid balance, add funds at https://ollama.com/settings")

TOO_LARGE: Final = Refusal(413)

_is_of_a_model: Final = posts_to(re.compile("/api/(chat|generate)"))
_VERSION: Final = "0.12.6"
_STOCK: Final = ("llama3.2",)
_SINCE: Final = "2025-01-01T00:00:00Z"
_STOPS: Final = {"end": "stop", "tool": "stop", "max_tokens": "length", "refusal": "stop"}
_DETAILS: Final = {
    "parent_model": "",
    "format": "gguf",
    "family": "llama",
    "families": ["llama"],
    "parameter_size": "3.2B",
    "quantization_level": "Q4_K_M",
}
_LOAD_NS: Final = 20_000_000
_READ_NS: Final = 1_000_000
_WRITE_NS: Final = 10_000_000
"""The times that it reports for loading a model, reading a token and writing one; the same in every run."""
_ERRORS: Final = {
    400: "bad request",
    401: "unauthorized",
    403: "forbidden",
    404: "not found",
    413: "request body too large",
    429: "too many requests",
    500: "an error was encountered while running the model: unexpected EOF",
    503: "server busy, please try again.  maximum pending requests exceeded",
}


def asks_for_reply(request: Request) -> bool:
    """Return True if the request has words; a request without words only loads or unloads the model."""
    return _is_of_a_model(request) and not only_loads(request)


def render(reply: Reply, exchange: Exchange) -> bytes:
    """Write a whole answer."""
    said: dict[str, Any] = {"role": "assistant", "content": ""}
    for index in range(len(reply.items)):
        for name, value in _said(reply, index, exchange).items():
            said[name] = said[name] + value if name in said else value
    return encode(_line(exchange, said) | _ending(reply, exchange))


def stream(reply: Reply, exchange: Exchange) -> Iterator[Frame]:
    """Write a line for each piece and each call, and a last line with the counts."""
    spent = exchange.billed.output_tokens
    meter = Meter(spent, sum(len(words(item)) for item in reply.items))
    for index, item in enumerate(reply.items):
        whole = is_whole(reply, index) and not isinstance(item, Thinking)
        pace_s = item.pace_ms / 1000 if isinstance(item, Text) else 0
        ((name, value),) = _said(reply, index, exchange).items()
        parts = [value] if name == "tool_calls" else pieces(value)
        for number, part in enumerate(parts, start=1):
            meter.add(len(words(item)) if name == "tool_calls" else len(part))
            line = _line(exchange, {"role": "assistant", "content": "", name: part})
            yield Frame(_framed(line | {"done": False}), pace_s, meter.now, whole and number == len(parts))
    last = _line(exchange, {"role": "assistant", "content": ""}) | _ending(reply, exchange)
    yield Frame(_framed(last), tokens=spent, terminal=True)


def framing(exchange: Exchange) -> Framing:
    """Return line framing; a line without words keeps the stream alive."""
    silence = _line(exchange, {"role": "assistant", "content": ""})
    return Framing("application/x-ndjson", _framed(silence | {"done": False}))


def error(refusal: Refusal, request: Request) -> Response:
    """Write `{"error": "…"}`, which has no kind."""
    message = refusal.message or _ERRORS.get(refusal.status) or _ERRORS[500 if refusal.status >= 500 else 400]
    body = encode({"error": message})
    return Response(refusal.status, body, refusal.kind, message, "application/json; charset=utf-8")


def error_event(refusal: Refusal, exchange: Exchange, number: int) -> bytes:
    """Write an error as a line."""
    return error(refusal, exchange.request).body + b"\n"


def aside(request: Request, models: Models) -> Response | None:
    """Answer tags, ps, version, show, and a request that only loads a model."""
    asked = (request.method.replace("HEAD", "GET"), request.path)
    if asked == ("GET", "/api/version"):
        return Response(200, encode({"version": _VERSION}))
    if asked == ("GET", "/api/tags"):
        return Response(200, encode({"models": [_model(name) for name in models or _STOCK]}))
    if asked == ("GET", "/api/ps"):
        return Response(200, encode({"models": []}))
    if asked == ("POST", "/api/show"):
        return _shown(request, models)
    return _loaded(request, models) if _is_of_a_model(request) else None


def headers(request: Request) -> list[tuple[str, str]]:
    """Return no headers: this provider's replies have no id."""
    return []


def _said(reply: Reply, index: int, exchange: Exchange) -> dict[str, Any]:
    """Return an item as the one field of a message, with its value."""
    item = reply.items[index]
    if isinstance(item, Text):
        return {"content": item.text}
    if isinstance(item, Thinking):
        return {"thinking": item.text}
    args = args_of(item)
    if args is None or exchange.request.path != CHAT:
        return {"content": _words_of(item)}
    place = sum(1 for one in reply.items[:index] if isinstance(one, ToolCall))
    id_ = item.id or made_up("tool", exchange.request.call, index, length=8)
    function = {"index": place, "name": item.name, "arguments": args}
    return {"tool_calls": [{"id": f"call_{id_}", "function": function}]}


def _words_of(item: ToolCall) -> str:
    """Write a call as the model's text."""
    close = "}" if item.raw_args is None else ""
    return f'{{"name":{json.dumps(item.name)},"arguments":{arguments(item.args, item.raw_args)}{close}'


def _line(exchange: Exchange, message: dict[str, Any]) -> dict[str, Any]:
    created = datetime.fromtimestamp(exchange.created_s, UTC).isoformat().replace("+00:00", "Z")
    line = {"model": exchange.conversation.model, "created_at": created}
    if exchange.request.path == CHAT:
        return line | {"message": message}
    thought = {"thinking": message["thinking"]} if "thinking" in message else {}
    return line | {"response": message["content"], **thought}


def _framed(line: dict[str, Any]) -> bytes:
    return encode(line) + b"\n"


def _ending(reply: Reply, exchange: Exchange) -> dict[str, Any]:
    read, written = exchange.billed.input_tokens, exchange.billed.output_tokens
    context = {} if exchange.request.path == CHAT else {"context": list(range(1, 1 + min(read + written, 8)))}
    return {
        "done": True,
        "done_reason": _STOPS[stop_of(reply)],
        **context,
        "total_duration": _LOAD_NS + read * _READ_NS + written * _WRITE_NS,
        "load_duration": _LOAD_NS,
        "prompt_eval_count": read,
        "prompt_eval_duration": read * _READ_NS,
        "eval_count": written,
        "eval_duration": written * _WRITE_NS,
    }


def _loaded(request: Request, models: Models) -> Response:
    refusal = refuse(request, models)
    if refusal:
        return error(refusal, request)
    document = request.document or {}
    said = {"message": {"role": "assistant", "content": ""}} if request.path == CHAT else {"response": ""}
    reason = "unload" if document.get("keep_alive") == 0 else "load"
    line = {"model": document["model"], "created_at": _SINCE} | said | {"done": True, "done_reason": reason}
    return Response(200, encode(line), content_type="application/json; charset=utf-8")


def _shown(request: Request, models: Models) -> Response:
    document = request.document or {}
    name = document.get("model") or document.get("name")
    if not name:
        return error(Refusal(400, "missing request body" if not request.body else "model is required"), request)
    if not is_known(str(name), models):
        return error(no_model(name), request)
    told = {
        "modelfile": f"FROM {name}\n",
        "parameters": "",
        "template": "{{ .Prompt }}",
        "details": _DETAILS,
        "model_info": {"general.architecture": "llama", "llama.context_length": 131072},
        "capabilities": ["completion", "tools", "thinking"],
        "modified_at": _SINCE,
    }
    return Response(200, encode(told))


def _model(name: str) -> dict[str, Any]:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return {
        "name": name,
        "model": name,
        "modified_at": _SINCE,
        "size": 2_019_393_189,
        "digest": digest,
        "details": _DETAILS,
    }
