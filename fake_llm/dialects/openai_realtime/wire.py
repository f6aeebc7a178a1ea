"""OpenAI's Realtime API: a WebSocket at `/v1/realtime?model=…`, with text and tool calls.

Source: the types of the official SDK, `openai.types.realtime` and `openai.types.beta.realtime`.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.dialects.base import Exchange, Framing, Models, Refusal, ReplyWriter, Response
from wedgehog.fake_llm.dialects.openai_common import OpenAIDialect, bad, unreadable
from wedgehog.fake_llm.dialects.openai_realtime import validate
from wedgehog.fake_llm.dialects.openai_realtime.names import CREATE, Names
from wedgehog.fake_llm.dialects.openai_realtime.session import RealtimeSession
from wedgehog.fake_llm.dialects.openai_responses.read import messages_of, tool_of
from wedgehog.fake_llm.dialects.openai_responses.wire import called
from wedgehog.fake_llm.frame import SSE, Frame, encode, event
from wedgehog.fake_llm.grapheme import pieces
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.reply import Text, Thinking, ToolCall, pace_s
from wedgehog.fake_llm.request import Request, counted, json_object, listed, mapped, system_first, text_of
from wedgehog.fake_llm.usage import Meter, arguments

PATH: Final = "/v1/realtime"
_RESET: Final = "reset_seconds"
_LIMITED: Final = 429
_SERVER_ERROR: Final = 500
_NamedEvent = tuple[str, dict[str, Any], Frame]
"""An event's name, its data without name and id, and a frame for its delay and tokens."""


class _RealtimeWriter(ReplyWriter):
    def whole(self) -> bytes:
        return encode(self._response(self._status(), [self._item(index) for index in self._shown()]))

    def frames(self) -> Iterator[Frame]:
        """Yield events from `response.created` to `response.done`; the conversation gets the reply's items."""
        for number, (name, data, frame) in enumerate(self._events()):
            told = event(encode({"type": name, "event_id": _event_id(self.call, number), **data}), name)
            yield Frame(told, frame.delay_s, frame.tokens, frame.completes, frame.terminal)

    def _events(self) -> Iterator[_NamedEvent]:
        session, document = session_of(self.exchange.request), self.exchange.request.document or {}
        meter, shown = self.meter(), self._shown()
        items = [self._item(index) for index in shown]
        befores = [session.items[-1]["id"] if session.items else None, *[item["id"] for item in items]]
        kept = document.get("conversation") != "none"
        session.said(response_id(self.call), items, kept=kept)
        yield "response.created", {"response": self._response("in_progress", [])}, Frame(b"")
        for index, said in enumerate(self.items):
            if isinstance(said, Thinking):
                meter.add(len(said.text))
            else:
                at = shown.index(index)
                entry = {"previous_item_id": befores[at], "item": items[at]}
                yield from self._entered(index, at, entry, meter, kept=kept)
        done = {"response": self._response(self._status(), items)}
        yield "response.done", done, Frame(b"", tokens=self.spent, terminal=True)

    def _entered(
        self, index: int, at: int, entry: dict[str, Any], meter: Meter, *, kept: bool
    ) -> Iterator[_NamedEvent]:
        """Yield the events of item `index`, which is number `at` of those that are shown."""
        names, said, item = session_of(self.exchange.request).names, self.items[index], entry["item"]
        place, opening = {"response_id": response_id(self.call), "output_index": at}, _opening(item)
        about = {**place, "item_id": item["id"]}
        yield "response.output_item.added", {**place, "item": opening}, Frame(b"", tokens=meter.now)
        if kept:
            yield names.added, {**entry, "item": opening}, Frame(b"", tokens=meter.now)
        if isinstance(said, Text):
            yield from _said(said, about, meter, names)
        elif isinstance(said, ToolCall):
            yield from called(said, item, {**about, "call_id": item["call_id"]}, meter)
        if kept and names.done:
            yield names.done, entry, Frame(b"", tokens=meter.now)
        whole = Frame(b"", tokens=meter.now, completes=self.delivers(index))
        yield "response.output_item.done", {**place, "item": item}, whole

    def _shown(self) -> list[int]:
        return [index for index, item in enumerate(self.items) if not isinstance(item, Thinking)]

    def _status(self) -> str:
        return "incomplete" if self._reason() else "completed"

    def _reason(self) -> str:
        filtered = {"refusal": "content_filter", "filter": "content_filter"}
        return {"max_tokens": "max_output_tokens", **filtered}.get(self.reply.stop_reason, "")

    def _response(self, status: str, items: list[dict[str, Any]]) -> dict[str, Any]:
        details = {"type": status, "reason": self._reason()} if status == "incomplete" else None
        usage = None if status == "in_progress" else usage_of(self.read, self.spent)
        return response_of(self.exchange.request, status, details, items, usage)

    def _item(self, index: int) -> dict[str, Any]:
        item = self.items[index]
        status = "completed" if self.completes(index) else "incomplete"
        about = {"id": f"item_{made_up('item', self.call, index, length=21)}", "object": "realtime.item"}
        if isinstance(item, ToolCall):
            call = {"call_id": f"call_{item.id or made_up('tool', self.call, index, length=16)}", "name": item.name}
            told = arguments(item.args, item.raw_args)
            return {**about, "type": "function_call", "status": status, **call, "arguments": told}
        part = {"type": session_of(self.exchange.request).names.text, "text": item.text}
        return {**about, "type": "message", "status": status, "role": "assistant", "content": [part]}


def session_of(request: Request) -> RealtimeSession:
    """Return the session of a request's connection; of a request without one it is empty."""
    memory = request.memory
    return memory if isinstance(memory, RealtimeSession) else RealtimeSession(memory)


def response_id(call: int) -> str:
    """Return the id of the reply to a call."""
    return f"resp_{made_up('resp', call, length=21)}"


def response_of(
    request: Request, status: str, details: object, items: list[dict[str, Any]], usage: object
) -> dict[str, Any]:
    """Return a response object; the fields of audio are left out."""
    document, session = request.document or {}, session_of(request)
    named = document.get("conversation") != "none"
    return {
        "object": "realtime.response",
        "id": response_id(request.call),
        "status": status,
        "status_details": details,
        "output": items,
        "conversation_id": f"conv_{made_up('conv', 'connection', session.number, length=21)}" if named else None,
        session.names.modalities: ["text"],
        "max_output_tokens": document.get("max_output_tokens") or "inf",
        "metadata": document.get("metadata"),
        "usage": usage,
    }


def usage_of(read: int, spent: int) -> dict[str, Any]:
    """Return the tokens of a response, all of them text."""
    none = {"text_tokens": 0, "audio_tokens": 0, "image_tokens": 0}
    return {
        "total_tokens": read + spent,
        "input_tokens": read,
        "output_tokens": spent,
        "input_token_details": {**none, "text_tokens": read, "cached_tokens": 0, "cached_tokens_details": none},
        "output_token_details": {"text_tokens": spent, "audio_tokens": 0},
    }


def _event_id(call: int, number: int) -> str:
    return f"event_{made_up('event', call, number, length=21)}"


def _opening(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item before its first delta."""
    empty = {"content": [], "arguments": "", "status": "in_progress"}
    return {name: empty.get(name, value) for name, value in item.items()}


def _said(said: Text, about: dict[str, Any], meter: Meter, names: Names) -> Iterator[_NamedEvent]:
    at, name = {**about, "content_index": 0}, f"response.{names.text}"
    yield "response.content_part.added", {**at, "part": {"type": "text", "text": ""}}, Frame(b"", tokens=meter.now)
    for piece in pieces(said.text):
        yield f"{name}.delta", {**at, "delta": piece}, Frame(b"", pace_s(said), meter.add(len(piece)))
    yield f"{name}.done", {**at, "text": said.text}, Frame(b"", tokens=meter.now)
    whole = {"type": "text", "text": said.text}
    yield "response.content_part.done", {**at, "part": whole}, Frame(b"", tokens=meter.now)


class _OpenAIRealtime(OpenAIDialect):
    WIRE = "openai-realtime"
    PATHS = re.compile(PATH)
    REPLIES = re.compile(PATH)
    WRITER = _RealtimeWriter
    FRAMING = Framing(SSE, b": ping\n\n")

    def asks_for_reply(self, request: Request) -> bool:
        """Return False for a message that is refused for what it is; the result of an unknown call is a history."""
        refusal = session_of(request).refusal
        return super().asks_for_reply(request) and request.websocket and (refusal is None or refusal.pairing)

    def parse(self, request: Request) -> Conversation:
        """Read a request that holds its whole conversation."""
        document = request.document or {}
        items = [_heard(mapped(item)) for item in listed(document.get("input"))]
        return Conversation(
            wire=self.WIRE,
            model=str(document.get("model") or ""),
            stream=True,
            messages=system_first(text_of(document.get("instructions")), messages_of(items)),
            tools=tuple(tool_of(mapped(tool)) for tool in listed(document.get("tools"))),
            max_tokens=counted(document.get("max_output_tokens")),
        )

    def refusals(self, request: Request, models: Models) -> Iterator[Refusal]:
        """Yield what is refused of a message."""
        yield from unreadable(request)
        session, document = session_of(request), request.document or {}
        if session.refusal:
            yield session.refusal
        if document.get("type") == CREATE:
            yield from validate.asked(document, models, session.names)

    def aside(self, request: Request, models: Models) -> Response | None:
        """Refuse a message, and a request that is no WebSocket."""
        if not request.key:
            return self.error(self.NO_KEY, request)
        no_socket = bad("This path is a WebSocket. Connect with 'Upgrade: websocket'.")
        return self.error(session_of(request).refusal or no_socket, request)

    def error_event(self, refusal: Refusal, exchange: Exchange, number: int) -> bytes:
        """Write the end of a reply that fails; the conversation does not keep what it said."""
        session_of(exchange.request).forget_last()
        told = _failed(self.described(refusal), exchange.request, number)
        return event(encode(told), "response.done")

    def failure_headers(self, status: int, wait_s: float, now: datetime) -> list[tuple[str, str]]:
        """Return the seconds until a limit ends; the client reads them in an event."""
        return [(_RESET, str(wait_s))]

    def error_messages(self, told: Response, headers: Mapping[str, str], request: Request) -> list[dict[str, Any]]:
        """Tell a client's mistake by an `error`, and a failure of the service by a failed response."""
        failed = told.message or "The server had an error while processing your request."
        error = mapped((json_object(told.body) or {}).get("error")) or {"type": "server_error", "message": failed}
        if told.status != _LIMITED and told.status < _SERVER_ERROR:
            by = (request.document or {}).get("event_id")
            return [{"type": "error", "event_id": _event_id(request.call, 0), "error": {**error, "event_id": by}}]
        started = {"response": response_of(request, "in_progress", None, [], None)}
        created = {"type": "response.created", "event_id": _event_id(request.call, 0), **started}
        limits = _limits(headers, request) if told.status == _LIMITED or "Retry-After" in headers else ()
        return [created, *limits, _failed(error, request, 2)]


def _failed(error: dict[str, Any], request: Request, number: int) -> dict[str, Any]:
    known = {name: error.get(name) for name in ("type", "code", "message")}
    details = {"type": "failed", "error": known}
    response = response_of(request, "failed", details, [], usage_of(0, 0))
    return {"type": "response.done", "event_id": _event_id(request.call, number), "response": response}


def _limits(headers: Mapping[str, str], request: Request) -> Iterator[dict[str, Any]]:
    """Yield when a limit ends; headers do not reach a client of a WebSocket."""
    with suppress(KeyError):
        reset_s = float(headers[_RESET])
        limit = {"name": "requests", "limit": 60, "remaining": 0, "reset_seconds": reset_s}
        yield {"type": "rate_limits.updated", "event_id": _event_id(request.call, 1), "rate_limits": [limit]}


def _heard(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item whose audio is its transcript."""
    if not isinstance(item.get("content"), list):
        return item
    parts = map(mapped, item["content"])
    heard = [part | {"text": part["transcript"]} if "transcript" in part else part for part in parts]
    return item | {"content": heard}


OPENAI_REALTIME: Final = _OpenAIRealtime()
