"""OpenAI's chat completions: `POST /v1/chat/completions`, streamed and not, with `n` choices."""

import hashlib
import re
import struct
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen
from wedgehog.fake_llm.dialects.base import Exchange, Framing, Models, Refusal, ReplyWriter, Response
from wedgehog.fake_llm.dialects.openai_chat import moderations
from wedgehog.fake_llm.dialects.openai_chat.validate import MOST_COPIES, no_model, refusals
from wedgehog.fake_llm.dialects.openai_common import OpenAIDialect, bad, missing, unreadable
from wedgehog.fake_llm.frame import SSE, Frame, encode, event
from wedgehog.fake_llm.grapheme import pieces
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.reply import Overflow, Text, Thinking, ToolCall, pace_s
from wedgehog.fake_llm.request import Request, counted, images_in, listed, mapped, stops_in, text_of, tool_spec
from wedgehog.fake_llm.usage import Meter, arguments, tokens_in

_ROLES: Final = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool"}
_DIMENSIONS: Final = 1536
_MOST_DIMENSIONS: Final = 3072
_Delta = tuple[dict[str, Any], Frame]
"""A delta, and a frame for its delay and tokens."""


class _ChatWriter(ReplyWriter):
    STOPS: ClassVar = {
        "end": "stop",
        "tool": "tool_calls",
        "max_tokens": "length",
        "refusal": "content_filter",
        "filter": "content_filter",
    }

    def whole(self) -> bytes:
        choices = [
            {"index": choice, "message": self._message(choice), "logprobs": None, "finish_reason": self._finish()}
            for choice in range(self._choices())
        ]
        return encode(_envelope(self.exchange, "chat.completion") | {"choices": choices, "usage": self._usage()})

    def frames(self) -> Iterator[Frame]:
        """Yield chunks: the role, the pieces, the finish reason, the usage if asked for, and `[DONE]`."""
        document, count = self.exchange.request.document or {}, self._choices()
        told = mapped(document.get("stream_options")).get("include_usage") is True
        extra = {"usage": None} if told else {}
        meter = self.meter()
        body = _envelope(self.exchange, "chat.completion.chunk")
        if not count:
            yield Frame(event(encode(body | {"choices": []} | extra)), tokens=self.spent)
        for choice in range(count):
            for delta, frame in self._deltas(choice, meter):
                piece = {"index": choice, "delta": delta, "logprobs": None, "finish_reason": None}
                data = event(encode(body | {"choices": [piece]} | extra))
                yield Frame(data, frame.delay_s, frame.tokens, frame.completes)
            last = {"index": choice, "delta": {}, "logprobs": None, "finish_reason": self._finish()}
            tokens = self.spent if choice == count - 1 else meter.now
            yield Frame(event(encode(body | {"choices": [last]} | extra)), tokens=tokens)
        if told:
            yield Frame(event(encode(body | {"choices": [], "usage": self._usage()})), tokens=self.spent)
        yield Frame(event(b"[DONE]"), tokens=self.spent, terminal=True)

    def _choices(self) -> int:
        return 0 if self.reply.no_choice else self.exchange.conversation.copies

    def _message(self, choice: int) -> dict[str, Any]:
        texts = [item.text for item in self.items if isinstance(item, Text)]
        calls = [
            self._called(item, index, choice)
            | {"function": {"name": item.name, "arguments": arguments(item.args, item.raw_args)}}
            for index, item in enumerate(self.items)
            if isinstance(item, ToolCall)
        ]
        content = "".join(texts) if texts or not calls else None
        said = {"content": None, "refusal": content} if self._refuses() else {"content": content, "refusal": None}
        message: dict[str, Any] = {"role": "assistant", **said, "annotations": []}
        thoughts = "".join(item.text for item in self.items if isinstance(item, Thinking))
        shown = {"reasoning_content": thoughts} if thoughts and self.reply.shows_thoughts else {}
        return message | shown | ({"tool_calls": calls} if calls else {})

    def _called(self, item: ToolCall, index: int, choice: int) -> dict[str, Any]:
        id_ = item.id or made_up("tool", self.call, index, choice, length=24)
        return {"id": f"call_{id_}{f'_{choice}' if item.id and choice else ''}", "type": "function"}

    def _deltas(self, choice: int, meter: Meter) -> Iterator[_Delta]:
        """Yield each delta of a choice."""
        opens_with_text = not self.items or (self._says() and not self._refuses())
        key = "refusal" if self._refuses() else "content"
        yield {"role": "assistant", "content": "" if opens_with_text else None, "refusal": None}, _frame(meter.now)
        place = 0
        for index, item in enumerate(self.items):
            whole = self.completes(index)
            if isinstance(item, Thinking):
                tokens = meter.add(len(item.text))
                if self.reply.shows_thoughts:
                    yield {"reasoning_content": item.text}, _frame(tokens, whole)
            elif isinstance(item, Text):
                parts = pieces(item.text)
                for number, part in enumerate(parts, start=1):
                    ends = whole and number == len(parts)
                    yield {key: part}, Frame(b"", pace_s(item), meter.add(len(part)), ends)
            else:
                yield from _tool_call(item, place, self._called(item, index, choice), whole, meter)
                place += 1

    def _says(self) -> bool:
        return any(isinstance(item, Text) for item in self.items)

    def _refuses(self) -> bool:
        """Return True for the model's own refusal; a refusal without text is a filter's."""
        return self.reply.stop_reason == "refusal" and self._says()

    def _finish(self) -> str:
        return "stop" if self._refuses() else self.stop

    def _usage(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self.read,
            "completion_tokens": self.spent,
            "total_tokens": self.read + self.spent,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": self.thought,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        }


def _envelope(exchange: Exchange, kind: str) -> dict[str, Any]:
    model = exchange.conversation.model
    return {
        "id": f"chatcmpl-{made_up('message', exchange.request.call, length=29)}",
        "object": kind,
        "created": exchange.created_s,
        "model": model,
        "service_tier": "default",
        "system_fingerprint": f"fp_{made_up('model', model, length=10, small=True)}",
    }


def _tool_call(item: ToolCall, place: int, called: dict[str, Any], whole: bool, meter: Meter) -> Iterator[_Delta]:
    parts = pieces(arguments(item.args, item.raw_args))
    opening = {"index": place, **called, "function": {"name": item.name, "arguments": ""}}
    yield {"tool_calls": [opening]}, _frame(meter.add(len(item.name)), whole and not parts)
    for number, part in enumerate(parts, start=1):
        delta = {"tool_calls": [{"index": place, "function": {"arguments": part}}]}
        yield delta, Frame(b"", pace_s(item), meter.add(len(part)), whole and number == len(parts))


def _frame(tokens: int, completes: bool = False) -> Frame:
    return Frame(b"", 0, tokens, completes)


class _OpenAIChat(OpenAIDialect):
    WIRE = "openai-chat"
    PATHS = re.compile("/v1/(chat|models|embeddings|moderations)(/.*)?")
    REPLIES = re.compile("/v1/chat/completions")
    WRITER = _ChatWriter
    STOCK = ("gpt-5",)
    FRAMING = Framing(SSE, b": ping\n\n")

    refusals = staticmethod(refusals)

    def parse(self, request: Request) -> Conversation:
        document = request.document or {}
        limits = [counted(document.get(name)) for name in ("max_completion_tokens", "max_tokens")]
        return Conversation(
            wire=self.WIRE,
            model=str(document.get("model", "")),
            stream=document.get("stream") is True,
            messages=tuple([_seen(mapped(message)) for message in listed(document.get("messages"))]),
            tools=tuple([tool_spec(mapped(mapped(tool).get("function"))) for tool in listed(document.get("tools"))]),
            max_tokens=next((limit for limit in limits if limit is not None), None),
            stops=stops_in(document.get("stop")),
            schema=_schema(mapped(document.get("response_format"))),
            copies=min(max(1, counted(document.get("n")) or 1), MOST_COPIES),
        )

    def too_long(self, overflow: Overflow, request: Request) -> Refusal:
        """Refuse with the two sizes, as in https://github.com/crewAIInc/crewAI-examples/issues/121."""
        sizes = f"is {overflow.window} tokens. However, your messages resulted in {overflow.tokens} tokens"
        text = f"This model's maximum context length {sizes}. Please reduce the length of the messages."
        return bad(text, "messages", "context_length_exceeded")

    def error_event(self, refusal: Refusal, exchange: Exchange, number: int) -> bytes:
        return event(self.error(refusal, exchange.request).body)

    def gateway_error(self, refusal: Refusal, exchange: Exchange, number: int) -> bytes:
        """Write a chunk that ends its choice, as in https://openrouter.ai/docs/api-reference/streaming."""
        told = {"code": refusal.status, "message": self.described(refusal)["message"]}
        ended = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": "error"}
        return event(encode(_envelope(exchange, "chat.completion.chunk") | {"error": told, "choices": [ended]}))

    def aside(self, request: Request, models: Models) -> Response | None:
        """Answer `GET /v1/models`, `GET /v1/models/NAME`, `POST /v1/embeddings` and `POST /v1/moderations`."""
        if request.method != "POST" or request.path not in _ASIDES:
            return self.listed(request, models, "/v1/models")
        refused, reply = _ASIDES[request.path]
        refusal = next(refused(request), None)
        return self.error(refusal, request) if refusal else Response.of(reply(request))

    def models(self, models: list[dict[str, Any]]) -> dict[str, Any]:
        return {"object": "list", "data": models}

    def model(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": 1735689600, "owned_by": "wedgehog"}

    def no_model(self, name: str, request: Request) -> Refusal:
        return no_model(name)


OPENAI_CHAT: Final = _OpenAIChat()


def _seen(message: dict[str, Any]) -> Message:
    role = _ROLES.get(str(message.get("role")), "user")
    text = text_of(message.get("content"))
    images = images_in(message.get("content"))
    if role == "tool":
        result = ToolResultSeen(str(message.get("tool_call_id", "")), text)
        return Message("tool", tool_results=(result,), images=images)
    if role == "assistant":
        calls = (mapped(call) for call in listed(message.get("tool_calls")))
        thoughts = tuple(it for it in map(message.get, ("reasoning_content", "reasoning")) if isinstance(it, str))[:1]
        return Message("assistant", text, tuple(_call(call) for call in calls), thoughts=thoughts)
    return Message("system" if role == "system" else "user", text, images=images)


def _call(call: dict[str, Any]) -> ToolCallSeen:
    function = mapped(call.get("function"))
    return ToolCallSeen(str(call.get("id", "")), str(function.get("name", "")), str(function.get("arguments", "")))


def _schema(wanted: dict[str, Any]) -> dict[str, Any] | None:
    if wanted.get("type") == "json_object":
        return {"type": "object"}
    return mapped(mapped(wanted.get("json_schema")).get("schema")) if "json_schema" in wanted else None


def _embeddings(request: Request) -> dict[str, Any]:
    """Return a vector for each text."""
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
    return {"object": "list", "data": vectors, "model": document["model"], "usage": usage}


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


_ASIDES: Final[Mapping[str, tuple[Callable[[Request], Iterator[Refusal]], Callable[[Request], dict[str, Any]]]]] = {
    "/v1/embeddings": (_unembeddable, _embeddings),
    moderations.PATH: (moderations.unmoderated, moderations.moderations),
}
"""What refuses and what answers a request that is no chat, by its path."""
