"""Google's Gemini: `POST /v1beta/models/MODEL:generateContent`, and `:streamGenerateContent` as SSE or a JSON array.

Arguments are objects: a call whose `raw_args` are no object does not reach the client. As from the provider, the client
gets MALFORMED_FUNCTION_CALL with the model's words in `finishMessage`, or MAX_TOKENS if they were cut.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from wedgehog.fake_llm.dialects.base import Dialect, Exchange, Framing, Models, Refusal, ReplyWriter, Response, bad
from wedgehog.fake_llm.dialects.gemini.read import ADDRESS, WIRE, field, parse
from wedgehog.fake_llm.dialects.gemini.validate import COUNT, NO_KEY, no_model, refusals
from wedgehog.fake_llm.frame import SSE, Frame, encode
from wedgehog.fake_llm.grapheme import pieces
from wedgehog.fake_llm.http_request import LARGEST_BODY
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.reply import CUT_STOPS, Overflow, Text, Thinking, ToolCall, pace_s
from wedgehog.fake_llm.request import Request
from wedgehog.fake_llm.usage import args_of, arguments, words

_TOO_LARGE: Final = Refusal(400, f"Request payload size exceeds the limit: {LARGEST_BODY} bytes.")
_ARRAY_TYPE: Final = "application/json; charset=UTF-8"
_EVENTS: Final = Framing(SSE, b"\r\n")
"""Official clients read comments as data, and skip an empty line."""
_ARRAY: Final = Framing(_ARRAY_TYPE, b"\r\n", b"[", b",\r\n", b"]")
_LIMITED: Final = 429
_BROKEN: Final = "MALFORMED_FUNCTION_CALL"
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
    413: ("INVALID_ARGUMENT", _TOO_LARGE.message),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    499: ("CANCELLED", "The operation was cancelled."),
    500: ("INTERNAL", "An internal error has occurred. Please retry or report in https://ai.google.dev/support"),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
    529: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}


class _GeminiWriter(ReplyWriter):
    STOPS: ClassVar = {
        "end": "STOP",
        "tool": "STOP",
        "max_tokens": "MAX_TOKENS",
        "refusal": "SAFETY",
        "filter": "SAFETY",
    }

    def whole(self) -> bytes:
        parts = [part for index in range(len(self.items)) for part in self._parts(index, whole=True)]
        return encode(self._chunk(parts, self.spent, self._ending()))

    def frames(self) -> Iterator[Frame]:
        """Yield responses with a piece of the candidate each, then one with the finish reason."""
        meter = self.meter()
        for index, item in enumerate(self.items):
            parts = list(self._parts(index, whole=False))
            if not parts:
                meter.add(len(words(item)))
            pause_s = pace_s(item)
            for number, part in enumerate(parts, start=1):
                tokens = meter.add(len(words(item)) if isinstance(item, ToolCall) else len(part["text"]))
                completes = number == len(parts) and self.delivers(index)
                yield Frame(self._framed(self._chunk([part], tokens)), pause_s, tokens, completes)
        last = self._chunk([{"text": ""}], self.spent, self._ending())
        yield Frame(self._framed(last), tokens=self.spent, terminal=True)

    def _framed(self, chunk: dict[str, Any]) -> bytes:
        return _framed(encode(chunk), self.exchange.request)

    def _parts(self, index: int, *, whole: bool) -> Iterator[dict[str, Any]]:
        """Yield an item's parts: one, the pieces of a streamed text, or none if the provider hides the item."""
        item = self.items[index]
        if isinstance(item, ToolCall):
            args = args_of(item)
            if args is not None:
                id_ = item.id or made_up("tool", self.call, index, length=12)
                called = {"functionCall": {"id": f"call_{id_}", "name": item.name, "args": args}}
                yield called | self._signature(index)
        elif isinstance(item, Text) or self._shows_thoughts():
            thought = {"thought": True} if isinstance(item, Thinking) else {}
            yield from ({"text": piece, **thought} for piece in ([item.text] if whole else pieces(item.text)))

    def _signature(self, index: int) -> dict[str, Any]:
        """Sign the first of parallel calls; newer models require the signature back."""
        if index != next(n for n, item in enumerate(self.items) if isinstance(item, ToolCall)):
            return {}
        return {"thoughtSignature": made_up("signature", self.call, length=64)}

    def _shows_thoughts(self) -> bool:
        config = field(self.exchange.request.document, "generationConfig")
        return field(field(config, "thinkingConfig"), "includeThoughts") is True

    def _ending(self) -> dict[str, Any]:
        broken = [item for item in self.items if isinstance(item, ToolCall) and args_of(item) is None]
        if self.reply.broken_call:
            return {"finishReason": _BROKEN, "finishMessage": "Malformed function call: default_api."}
        if broken and self.reply.stop not in CUT_STOPS:
            said = f"Malformed function call: {broken[0].name}({arguments({}, broken[0].raw_args)})"
            return {"finishReason": _BROKEN, "finishMessage": said}
        return {"finishReason": self.stop}

    def _chunk(
        self, parts: list[dict[str, Any]], output_tokens: int, ending: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        content = {} if self.reply.broken_call else {"parts": parts, "role": "model"}
        candidate = {"content": content, **(ending or {}), "index": 0}
        blocked = {"promptFeedback": {"blockReason": "OTHER"}}
        return {
            **(blocked if self.reply.no_choice else {"candidates": [candidate]}),
            "usageMetadata": self._usage(output_tokens),
            "modelVersion": self.exchange.conversation.model,
            "responseId": made_up("message", self.call, length=22),
        }

    def _usage(self, output_tokens: int) -> dict[str, Any]:
        thought = min(self.thought, output_tokens)
        return {
            "promptTokenCount": self.read,
            "candidatesTokenCount": output_tokens - thought,
            "totalTokenCount": self.read + output_tokens,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": self.read}],
            **({"thoughtsTokenCount": thought} if thought else {}),
        }


class _Gemini(Dialect):
    WIRE = WIRE
    PATHS = re.compile(r"/v1/models(/.*)?|/v1\w+/.*|/v1/(projects|publishers|tunedModels)/.*")
    REPLIES = re.compile(r"/v1\w*/(?:[^:]*/)?(?:models|tunedModels)/[^/:]+:(?:generateContent|streamGenerateContent)")
    WRITER = _GeminiWriter
    MARKS = ("x-goog-api-key", "x-goog-api-client", "key")
    STOCK = ("gemini-2.5-flash",)
    BROKE = Refusal(
        429,
        "Your prepayment credits are depleted. Please go to AI Studio at https://ai.studio/projects to manage your "
        "project and billing.",
    )
    NO_KEY = NO_KEY
    UNUSABLE: ClassVar[Mapping[str, Refusal]] = {
        "image": Refusal(
            400,
            "Unable to process input image. Please retry or report in "
            "https://developers.generativeai.google/guide/troubleshooting",
        ),
        "thinking": Refusal(400, "Corrupted thought signature."),
    }
    TOO_LARGE = _TOO_LARGE

    def too_long(self, overflow: Overflow, request: Request) -> Refusal:
        """Refuse with the two sizes, as in https://github.com/google-gemini/gemini-cli/issues/4118."""
        sizes = f"({overflow.tokens}) exceeds the maximum number of tokens allowed ({overflow.window})"
        return bad(f"The input token count {sizes}.")

    parse = staticmethod(parse)
    refusals = staticmethod(refusals)

    def framing(self, exchange: Exchange) -> Framing:
        """Return the framing of responses: events with `alt=sse`, else elements of an array."""
        return _EVENTS if _as_events(exchange.request) else _ARRAY

    def error(self, refusal: Refusal, request: Request) -> Response:
        """Write an error, in an array if the reply is one."""
        status, message = self.by_status(_ERRORS, refusal.status)
        status, message = refusal.kind or status, refusal.message or message
        body = {"error": {"code": refusal.status, "message": message, "status": status}}
        in_array = request.path.endswith(":streamGenerateContent") and not _as_events(request)
        return Response(refusal.status, encode([body] if in_array else body), status, message, _ARRAY_TYPE)

    def with_wait(self, told: Response, wait_s: float) -> Response:
        """Write it into the details of a 429, as in https://github.com/googleapis/python-genai/issues/1875."""
        body = json.loads(told.body)
        error = field(body[0] if isinstance(body, list) else body, "error")
        if told.status != _LIMITED or not isinstance(error, dict):
            return told
        error["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait_s:g}s"}]
        return replace(told, body=encode(body))

    def error_event(self, refusal: Refusal, exchange: Exchange, number: int) -> bytes:
        """Write an error in place of a response."""
        told = self.error(refusal, exchange.request).body
        return _framed(told, exchange.request) if _as_events(exchange.request) else told[1:-1]

    def aside(self, request: Request, models: Models) -> Response | None:
        """Answer `GET …/models`, `GET …/models/NAME` and `POST …/models/NAME:countTokens`."""
        address = ADDRESS.fullmatch(request.path)
        if not address or address[3] != COUNT or request.method != "POST":
            return self.listed(request, models, f"/{_version(request)}/models")
        inner = field(request.document, "generateContentRequest")
        asked = replace(request, document=inner if isinstance(inner, dict) else request.document)
        return self.counted(
            asked,
            models,
            lambda count: {"totalTokens": count, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": count}]},
        )

    def model(self, name: str) -> dict[str, Any]:
        return {
            "name": f"models/{name}",
            "version": "001",
            "displayName": name,
            "description": "",
            "inputTokenLimit": 1048576,
            "outputTokenLimit": 65536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        }

    def no_model(self, name: str, request: Request) -> Refusal:
        return no_model(name, _version(request))


GEMINI: Final = _Gemini()


def _as_events(request: Request) -> bool:
    return request.query.get("alt") == "sse"


def _framed(data: bytes, request: Request) -> bytes:
    return b"data: " + data + b"\r\n\r\n" if _as_events(request) else data


def _version(request: Request) -> str:
    return request.path.strip("/").partition("/")[0]
