"""OpenAI's Responses API: `POST /v1/responses`, streamed as numbered events, and the responses that it stores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from wedgehog.fake_llm.conversation import Conversation, Message, ToolCallSeen, ToolResultSeen, ToolSpec
from wedgehog.fake_llm.dialects.base import Exchange, Framing, Models, Refusal, Response, is_whole, posts_to
from wedgehog.fake_llm.dialects.openai_common import BROKE, NO_KEY, TOO_LARGE, described, error, headers  # noqa: F401  verbs
from wedgehog.fake_llm.dialects.openai_responses.response_object import finished, opening, started
from wedgehog.fake_llm.dialects.openai_responses.validate import CALLS, RESULTS, Stored, history, refuse, type_of
from wedgehog.fake_llm.frame import SSE, Frame, encode, event
from wedgehog.fake_llm.grapheme import pieces
from wedgehog.fake_llm.reply import Reply, Text, Thinking, ToolCall
from wedgehog.fake_llm.request import Request, counted, listed, mapped, text_of
from wedgehog.fake_llm.usage import Meter, input_tokens, words

WIRE: Final = "openai-responses"
asks_for_reply: Final = posts_to(re.compile("/v1/responses"))
PATHS: Final = re.compile("/v1/responses(/.*)?")
MARKS: Final = ()

_FRAMING: Final = Framing(SSE, b": ping\n\n")
_COUNT: Final = "/v1/responses/input_tokens"
_Event = tuple[str, dict[str, Any], Frame]
"""An event's name, its data without name and number, and a frame for its delay and tokens."""


def parse(request: Request) -> Conversation:
    """Read a request with the earlier responses that it names."""
    document = request.document or {}
    instructions = text_of(document.get("instructions"))
    wanted = mapped(mapped(document.get("text")).get("format"))
    return Conversation(
        wire=WIRE,
        model=str(document.get("model", "")),
        stream=document.get("stream") is True,
        messages=(*([Message("system", instructions)] if instructions else []), *_messages(history(request).items)),
        tools=tuple(_tool(mapped(tool)) for tool in listed(document.get("tools"))),
        max_tokens=counted(document.get("max_output_tokens")),
        schema=_schema(wanted),
    )


def render(reply: Reply, exchange: Exchange) -> bytes:
    """Write a whole response."""
    return encode(finished(reply, exchange))


def stream(reply: Reply, exchange: Exchange) -> Iterator[Frame]:
    """Write a response as events, from `response.created` to `response.completed` or `response.incomplete`."""
    for number, (name, data, frame) in enumerate(_events(reply, exchange)):
        told = event(encode({"type": name, **data, "sequence_number": number}), name)
        yield Frame(told, frame.delay_s, frame.tokens, frame.completes, frame.terminal)


def framing(exchange: Exchange) -> Framing:
    """Return SSE framing; pings are comments."""
    return _FRAMING


def error_event(refusal: Refusal, exchange: Exchange, number: int) -> bytes:
    """Write an event called `error`."""
    return event(encode({"type": "error", "error": described(refusal), "sequence_number": number}), "error")


def aside(request: Request, models: Models) -> Response | None:
    """Answer for stored responses, their input items, and `POST /v1/responses/input_tokens`."""
    if request.path == _COUNT and request.method == "POST":
        refusal = refuse(request, models)
        told = {"object": "response.input_tokens", "input_tokens": input_tokens(parse(request))}
        return error(refusal, request) if refusal else Response(200, encode(told))
    if not request.key:
        return error(NO_KEY, request)
    id_, _, what = request.path.removeprefix("/v1/responses").strip("/").partition("/")
    stored = request.memory.get(id_)
    if not isinstance(stored, Stored):
        unknown = Refusal(404, f"Response with id '{id_}' not found.", "invalid_request_error")
        return error(unknown, request) if id_ else None
    return _stored(request, id_, what, stored)


def _stored(request: Request, id_: str, what: str, stored: Stored) -> Response | None:
    match request.method, what:
        case "GET" | "HEAD", "":
            return Response(200, encode(stored.body))
        case "GET" | "HEAD", "input_items":
            ends = {"first_id": None, "last_id": None, "has_more": False}
            return Response(200, encode({"object": "list", "data": stored.given[::-1], **ends}))
        case "DELETE", "":
            request.memory.drop(id_)
            return Response(200, encode({"id": id_, "object": "response", "deleted": True}))
    return None


def _messages(items: list[dict[str, Any]]) -> Iterator[Message]:
    """Group items: consecutive texts and calls of the model are one message, and so are consecutive results."""
    said: list[str] = []
    calls: list[ToolCallSeen] = []
    results: list[ToolResultSeen] = []
    for item in [*items, {"type": "end", "role": ""}]:
        kind, role = type_of(item), item.get("role")
        if results and kind not in RESULTS:
            yield Message("tool", tool_results=tuple(results))
            results = []
        if kind == "reasoning":
            continue
        if (said or calls) and kind not in CALLS and not (role == "assistant" and not calls):
            yield Message("assistant", "\n".join(said), tuple(calls))
            said, calls = [], []
        if kind in CALLS:
            calls.append(_call(item))
        elif kind in RESULTS:
            results.append(ToolResultSeen(str(item.get("call_id", "")), text_of(item.get("output"))))
        elif role == "assistant":
            said.append(text_of(item.get("content")))
        elif kind == "message":
            yield Message("system" if role in ("system", "developer") else "user", text_of(item.get("content")))


def _call(item: dict[str, Any]) -> ToolCallSeen:
    said = item.get("arguments", item.get("input", ""))
    return ToolCallSeen(str(item.get("call_id", "")), str(item.get("name", "")), str(said))


def _tool(tool: dict[str, Any]) -> ToolSpec:
    name = str(tool.get("name") or tool.get("type", ""))
    return ToolSpec(name, str(tool.get("description") or ""), mapped(tool.get("parameters")))


def _schema(wanted: dict[str, Any]) -> dict[str, Any] | None:
    if wanted.get("type") == "json_object":
        return {"type": "object"}
    return mapped(wanted.get("schema")) if "schema" in wanted else None


def _events(reply: Reply, exchange: Exchange) -> Iterator[_Event]:
    spent = exchange.billed.output_tokens
    meter = Meter(spent, sum(len(words(item)) for item in reply.items))
    fresh = {"response": started(exchange)}
    yield "response.created", fresh, Frame(b"")
    yield "response.in_progress", fresh, Frame(b"")
    body = finished(reply, exchange)
    for index, said in enumerate(reply.items):
        item, place = body["output"][index], {"output_index": index}
        about = {"item_id": item["id"], **place}
        yield "response.output_item.added", {**place, "item": opening(item)}, Frame(b"", tokens=meter.now)
        if isinstance(said, Thinking):
            yield from _thought(said, item, about, meter)
        elif isinstance(said, Text):
            yield from _said(said, item, about, meter)
        else:
            yield from _called(said, item, about, meter)
        completes = is_whole(reply, index) and not isinstance(said, Thinking)
        done = {**place, "item": item}
        yield "response.output_item.done", done, Frame(b"", tokens=meter.now, completes=completes)
    yield f"response.{body['status']}", {"response": body}, Frame(b"", tokens=spent, terminal=True)


def _thought(said: Thinking, item: dict[str, Any], about: dict[str, Any], meter: Meter) -> Iterator[_Event]:
    if not item["summary"]:
        meter.add(len(said.text))
        return
    at, part = {**about, "summary_index": 0}, {"type": "summary_text", "text": ""}
    name = "response.reasoning_summary"
    yield f"{name}_part.added", {**at, "part": part}, Frame(b"", tokens=meter.now)
    for piece in pieces(said.text):
        yield f"{name}_text.delta", {**at, "delta": piece}, Frame(b"", tokens=meter.add(len(piece)))
    yield f"{name}_text.done", {**at, "text": said.text}, Frame(b"", tokens=meter.now)
    yield f"{name}_part.done", {**at, "part": item["summary"][0]}, Frame(b"", tokens=meter.now)


def _said(said: Text, item: dict[str, Any], about: dict[str, Any], meter: Meter) -> Iterator[_Event]:
    (part,) = item["content"]
    key = "refusal" if part["type"] == "refusal" else "text"
    name = f"response.{part['type']}"
    at = {**about, "content_index": 0}
    logprobs: dict[str, Any] = {"logprobs": []} if key == "text" else {}
    yield "response.content_part.added", {**at, "part": {**part, key: ""}}, Frame(b"", tokens=meter.now)
    for piece in pieces(said.text):
        frame = Frame(b"", said.pace_ms / 1000, meter.add(len(piece)))
        yield f"{name}.delta", {**at, "delta": piece, **logprobs}, frame
    yield f"{name}.done", {**at, key: said.text, **logprobs}, Frame(b"", tokens=meter.now)
    yield "response.content_part.done", {**at, "part": part}, Frame(b"", tokens=meter.now)


def _called(said: ToolCall, item: dict[str, Any], about: dict[str, Any], meter: Meter) -> Iterator[_Event]:
    meter.add(len(said.name))
    name = "response.function_call_arguments"
    for piece in pieces(item["arguments"]):
        yield f"{name}.delta", {**about, "delta": piece}, Frame(b"", tokens=meter.add(len(piece)))
    told = {"name": said.name, "arguments": item["arguments"]}
    yield f"{name}.done", {**about, **told}, Frame(b"", tokens=meter.now)
