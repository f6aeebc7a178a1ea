"""Ollama: `POST /api/chat` and `/api/generate`, streamed unless asked not to, one JSON object a line.

A call arrives whole, with its arguments as an object. A call with other arguments arrives as text, and so does every
call under `/api/generate`, which has no tools.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from wedgehog.fake_llm.dialects.base import Dialect, Exchange, Framing, Models, Refusal, ReplyWriter, Response
from wedgehog.fake_llm.dialects.ollama.validate import CHAT, WIRE, no_model, only_loads, parse, refusals
from wedgehog.fake_llm.frame import Frame, encode
from wedgehog.fake_llm.grapheme import pieces
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.reply import Text, Thinking, ToolCall, pace_s
from wedgehog.fake_llm.request import Request, is_known
from wedgehog.fake_llm.usage import args_of, arguments, words

_JSON: Final = "application/json; charset=utf-8"
_SINCE: Final = "2025-01-01T00:00:00Z"
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


class _OllamaWriter(ReplyWriter):
    STOPS: ClassVar = {"end": "stop", "tool": "stop", "max_tokens": "length", "refusal": "stop", "filter": "stop"}

    def whole(self) -> bytes:
        said: dict[str, Any] = {}
        for index in range(len(self.items)):
            name, value = self._said(index)
            said[name] = said[name] + value if name in said else value
        return encode(_line(self.exchange, **said) | self._ending())

    def frames(self) -> Iterator[Frame]:
        """Yield a line for each piece and each call, and a last line with the counts."""
        meter = self.meter()
        for index, item in enumerate(self.items):
            pause_s = pace_s(item)
            name, value = self._said(index)
            parts = [value] if name == "tool_calls" else pieces(value)
            for number, part in enumerate(parts, start=1):
                tokens = meter.add(len(words(item)) if name == "tool_calls" else len(part))
                completes = self.delivers(index) and number == len(parts)
                line = _line(self.exchange, **{name: part}) | {"done": False}
                yield Frame(_framed(line), pause_s, tokens, completes)
        yield Frame(_framed(_line(self.exchange) | self._ending()), tokens=self.spent, terminal=True)

    def _said(self, index: int) -> tuple[str, Any]:
        """Return an item as a field of a message: its name and value."""
        item = self.items[index]
        if isinstance(item, Text):
            return "content", item.text
        if isinstance(item, Thinking):
            return "thinking", item.text
        args = {} if item.raw_args == "" and self.completes(index) else args_of(item)
        if args is None or self.exchange.request.path != CHAT:
            return "content", _words_of(item)
        place = sum(1 for one in self.items[:index] if isinstance(one, ToolCall))
        id_ = item.id or made_up("tool", self.call, index, length=8)
        return "tool_calls", [{"id": f"call_{id_}", "function": {"index": place, "name": item.name, "arguments": args}}]

    def _ending(self) -> dict[str, Any]:
        read, written, is_chat = self.read, self.spent, self.exchange.request.path == CHAT
        return {
            "done": True,
            "done_reason": self.stop,
            **({} if is_chat else {"context": list(range(1, 1 + min(read + written, 8)))}),
            "total_duration": _LOAD_NS + read * _READ_NS + written * _WRITE_NS,
            "load_duration": _LOAD_NS,
            "prompt_eval_count": read,
            "prompt_eval_duration": read * _READ_NS,
            "eval_count": written,
            "eval_duration": written * _WRITE_NS,
        }


class _Ollama(Dialect):
    WIRE = WIRE
    PATHS = re.compile("/api/.*")
    REPLIES = re.compile("/api/(chat|generate)")
    WRITER = _OllamaWriter
    STOCK = ("llama3.2",)
    BROKE = Refusal(402, "you have used up your prepaid balance, add funds at https://ollama.com/settings")

    parse = staticmethod(parse)
    refusals = staticmethod(refusals)

    def asks_for_reply(self, request: Request) -> bool:
        """Return True if the request has words; a request without words only loads or unloads the model."""
        return super().asks_for_reply(request) and not only_loads(request)

    def framing(self, exchange: Exchange) -> Framing:
        """Return line framing; a line without words keeps the stream alive."""
        return Framing("application/x-ndjson", _framed(_line(exchange) | {"done": False}))

    def error(self, refusal: Refusal, request: Request) -> Response:
        """Write `{"error": "…"}`, which has no kind."""
        message = refusal.message or self.by_status(_ERRORS, refusal.status)
        return Response(refusal.status, encode({"error": message}), refusal.kind, message, _JSON)

    def error_event(self, refusal: Refusal, exchange: Exchange, number: int) -> bytes:
        return self.error(refusal, exchange.request).body + b"\n"

    def aside(self, request: Request, models: Models) -> Response | None:
        """Answer tags, ps, version, show, and a request that only loads a model."""
        match request.method.replace("HEAD", "GET"), request.path:
            case "GET", "/api/version":
                return Response.of({"version": "0.12.6"})
            case "GET", "/api/tags":
                return Response.of(self.models([self.model(name) for name in models or self.STOCK]))
            case "GET", "/api/ps":
                return Response.of(self.models([]))
            case "POST", "/api/show":
                return self._shown(request, models)
        return self._loaded(request, models) if super().asks_for_reply(request) else None

    def model(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "model": name,
            "modified_at": _SINCE,
            "size": 2_019_393_189,
            "digest": hashlib.sha256(name.encode()).hexdigest(),
            "details": _DETAILS,
        }

    def _loaded(self, request: Request, models: Models) -> Response:
        refusal = self.refuse(request, models)
        if refusal:
            return self.error(refusal, request)
        document = request.document or {}
        said = {"message": {"role": "assistant", "content": ""}} if request.path == CHAT else {"response": ""}
        reason = "unload" if document.get("keep_alive") == 0 else "load"
        line = {"model": document["model"], "created_at": _SINCE} | said | {"done": True, "done_reason": reason}
        return Response(200, encode(line), content_type=_JSON)

    def _shown(self, request: Request, models: Models) -> Response:
        document = request.document or {}
        name = document.get("model") or document.get("name")
        if not name:
            return self.error(Refusal(400, "model is required" if request.body else "missing request body"), request)
        if not is_known(str(name), models):
            return self.error(no_model(name), request)
        told = {
            "modelfile": f"FROM {name}\n",
            "parameters": "",
            "template": "{{ .Prompt }}",
            "details": _DETAILS,
            "model_info": {"general.architecture": "llama", "llama.context_length": 131072},
            "capabilities": ["completion", "tools", "thinking"],
            "modified_at": _SINCE,
        }
        return Response.of(told)


OLLAMA: Final = _Ollama()


def _words_of(item: ToolCall) -> str:
    """Write a call as the model's text."""
    close = "}" if item.raw_args is None else ""
    return f'{{"name":{json.dumps(item.name)},"arguments":{arguments(item.args, item.raw_args)}{close}'


def _line(exchange: Exchange, content: str = "", **more: Any) -> dict[str, Any]:
    """Return a line with a message; `more` are its thinking and its tool calls."""
    created = datetime.fromtimestamp(exchange.created_s, UTC).isoformat().replace("+00:00", "Z")
    line = {"model": exchange.conversation.model, "created_at": created}
    if exchange.request.path == CHAT:
        return line | {"message": {"role": "assistant", "content": content, **more}}
    return line | {"response": content, **more}


def _framed(line: dict[str, Any]) -> bytes:
    return encode(line) + b"\n"
