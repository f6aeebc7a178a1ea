"""OpenAI's Responses API: `POST /v1/responses`, streamed as numbered events, and the responses that it stores."""

import re
from collections.abc import Iterator
from typing import Any, Final

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.dialects.base import Exchange, Framing, Models, Refusal, ReplyWriter, Response
from wedgehog.fake_llm.dialects.openai_common import OpenAIDialect, bad
from wedgehog.fake_llm.dialects.openai_responses.read import (
    FREE_TEXT,
    is_custom,
    messages_of,
    named,
    schema_of,
    tools_of,
)
from wedgehog.fake_llm.dialects.openai_responses.validate import (
    Stored,
    StoredItem,
    given,
    history,
    refusals,
)
from wedgehog.fake_llm.frame import SSE, Frame, encode, event
from wedgehog.fake_llm.grapheme import pieces
from wedgehog.fake_llm.ids import made_up
from wedgehog.fake_llm.reply import ItemKind, Overflow, Text, Thinking, ToolCall, pace_s, unquoted
from wedgehog.fake_llm.request import Request, counted, listed, mapped, system_first, text_of
from wedgehog.fake_llm.usage import Meter, arguments

_Event = tuple[str, dict[str, Any], Frame]
"""An event's name, its data without name and number, and a frame for its delay and tokens."""
_ECHOED: Final[dict[str, Any]] = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


class _ResponsesWriter(ReplyWriter):
    def whole(self) -> bytes:
        return encode(self._finished())

    def frames(self) -> Iterator[Frame]:
        """Yield numbered events, from `response.created` to `response.completed` or `response.incomplete`."""
        for number, (name, data, frame) in enumerate(self._events()):
            told = event(encode({"type": name, **data, "sequence_number": number}), name)
            yield Frame(told, frame.delay_s, frame.tokens, frame.completes, frame.terminal)

    def _events(self) -> Iterator[_Event]:
        meter, fresh = self.meter(), {"response": self._started()}
        yield "response.created", fresh, Frame(b"")
        yield "response.in_progress", fresh, Frame(b"")
        body = self._finished()
        for index, said in enumerate(self.items):
            item, place = body["output"][index], {"output_index": index}
            about = {"item_id": item["id"], **place}
            yield "response.output_item.added", {**place, "item": _opening(item)}, Frame(b"", tokens=meter.now)
            if isinstance(said, Thinking):
                yield from _thought(said, item, about, meter)
            elif isinstance(said, Text):
                yield from _said(said, item, about, meter)
            else:
                yield from called(said, item, about, meter)
            done = {**place, "item": item}
            yield "response.output_item.done", done, Frame(b"", tokens=meter.now, completes=self.delivers(index))
        yield f"response.{body['status']}", {"response": body}, Frame(b"", tokens=self.spent, terminal=True)

    def _started(self, **more: Any) -> dict[str, Any]:
        """Return the response object before its first item, with the fields `more`."""
        document = self.exchange.request.document or {}
        echoed = {name: document.get(name) if document.get(name) is not None else _ECHOED[name] for name in _ECHOED}
        return {
            "id": self._id("resp"),
            "object": "response",
            "created_at": self.exchange.created_s,
            "status": "in_progress",
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "model": self.exchange.conversation.model,
            "output": [],
            "service_tier": "default",
            "usage": None,
            **echoed,
            **more,
        }

    def _finished(self) -> dict[str, Any]:
        """Return the finished response object; with `store: false` only a WebSocket knows it, until it ends."""
        output = [self._item(index) for index in range(len(self.items))]
        reason = self._unfinished()
        body = self._started(
            status="incomplete" if reason else "completed",
            completed_at=None if reason else self.exchange.created_s,
            incomplete_details={"reason": reason} if reason else None,
            output=output,
            usage=self._usage(),
        )
        document, memory = self.exchange.request.document or {}, self.exchange.request.memory
        keep = memory.keep if body["store"] else memory.keep_here
        keep(body["id"], Stored.of(body, document))
        for index, item in enumerate(output):
            reasoned = index > 0 and output[index - 1]["type"] == "reasoning"
            keep(item["id"], StoredItem(item, output[index - 1]["id"] if reasoned else ""))
        return body

    def _unfinished(self) -> str:
        if self.reply.stop_reason == "refusal" and not self.items:
            return "content_filter"
        return {"max_tokens": "max_output_tokens", "filter": "content_filter"}.get(self.reply.stop_reason, "")

    def _usage(self) -> dict[str, Any]:
        return {
            "input_tokens": self.read,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": self.spent,
            "output_tokens_details": {"reasoning_tokens": self.thought},
            "total_tokens": self.read + self.spent,
        }

    def _item(self, index: int) -> dict[str, Any]:
        item, status = self.items[index], "completed" if self.completes(index) else "incomplete"
        if isinstance(item, Thinking):
            document = self.exchange.request.document or {}
            # Reasoning is hidden, unless the request asks for summaries.
            shown = mapped(document.get("reasoning")).get("summary")
            summary = [{"type": "summary_text", "text": item.text}] if shown else []
            seals = "reasoning.encrypted_content" in listed(document.get("include"))
            sealed = {"encrypted_content": f"gAAAA{made_up(item.text, length=59)}"} if seals else {}
            return {"id": self._id("rs", index), "type": "reasoning", "summary": summary, **sealed}
        if isinstance(item, Text):
            part = {"type": "output_text", "annotations": [], "logprobs": [], "text": item.text}
            if self.reply.stop_reason == "refusal":
                part = {"type": "refusal", "refusal": item.text}
            ids = {"id": self._id("msg", index), "type": "message"}
            return {**ids, "status": status, "content": [part], "role": "assistant"}
        tools = listed((self.exchange.request.document or {}).get("tools"))
        call = {
            "call_id": f"call_{item.id or made_up('tool', self.call, index, length=24)}",
            **named(item.name, tools),
        }
        if is_custom(item.name, tools):
            ids = {"id": self._id("ctc", index), "type": "custom_tool_call"}
            return {**ids, "status": status, FREE_TEXT: _free_text(item), **call}
        ids = {"id": self._id("fc", index), "type": "function_call"}
        return {**ids, "status": status, "arguments": arguments(item.args, item.raw_args), **call}

    def _id(self, kind: str, index: int = 0) -> str:
        return f"{kind}_{made_up(kind, self.call, index, length=50, small=True)}"


def _opening(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item before its first delta."""
    empty = {"content": [], "arguments": "", FREE_TEXT: "", "summary": [], "status": "in_progress"}
    return {name: empty.get(name, value) for name, value in item.items()}


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
        frame = Frame(b"", pace_s(said), meter.add(len(piece)))
        yield f"{name}.delta", {**at, "delta": piece, **logprobs}, frame
    yield f"{name}.done", {**at, key: said.text, **logprobs}, Frame(b"", tokens=meter.now)
    yield "response.content_part.done", {**at, "part": part}, Frame(b"", tokens=meter.now)


def called(said: ToolCall, item: dict[str, Any], about: dict[str, Any], meter: Meter) -> Iterator[_Event]:
    """Yield the events of a call's arguments; `about` stands in each of them."""
    meter.add(len(said.name))
    custom = FREE_TEXT in item
    key, name = (FREE_TEXT, "custom_tool_call_input") if custom else ("arguments", "function_call_arguments")
    for piece in pieces(item[key]):
        delta = {**about, "delta": piece}
        yield f"response.{name}.delta", delta, Frame(b"", pace_s(said), meter.add(len(piece)))
    told = {key: item[key]} if custom else {"name": item["name"], key: item[key]}
    yield f"response.{name}.done", {**about, **told}, Frame(b"", tokens=meter.now)


def _free_text(call: ToolCall) -> str:
    """What a call of a custom tool says; of a call that was cut, what came of it."""
    if call.raw_args is None:
        return str(call.args.get(FREE_TEXT, ""))
    quoted = call.raw_args.removeprefix(f'{{"{FREE_TEXT}":"')
    return unquoted(quoted) if quoted != call.raw_args else call.raw_args


class _OpenAIResponses(OpenAIDialect):
    WIRE = "openai-responses"
    PATHS = re.compile("/v1/responses(/.*)?")
    REPLIES = re.compile("/v1/responses")
    WRITER = _ResponsesWriter
    FRAMING = Framing(SSE, b": ping\n\n")

    refusals = staticmethod(refusals)

    def unusable(self, item: ItemKind, request: Request) -> Refusal:
        """Return the words for an item; of reasoning with the id of the last one."""
        if item != "thinking":
            return super().unusable(item, request)
        ids = [str(it.get("id")) for it in given(request.document or {}) if it.get("type") == "reasoning"]
        why = "could not be verified. Reason: Encrypted content could not be decrypted or parsed."
        told = f"The encrypted content for item {ids[-1] if ids else ''} {why}"
        return Refusal(400, told, "invalid_request_error", code="invalid_encrypted_content")

    def too_long(self, overflow: Overflow, request: Request) -> Refusal:
        """Refuse without the sizes, as in https://github.com/dyad-sh/dyad/issues/1672 (there as an event)."""
        text = "Your input exceeds the context window of this model. Please adjust your input and try again."
        return bad(text, "input", "context_length_exceeded")

    def parse(self, request: Request) -> Conversation:
        """Read a request with the earlier responses that it names."""
        document = request.document or {}
        return Conversation(
            wire=self.WIRE,
            model=str(document.get("model", "")),
            stream=document.get("stream") is True,
            messages=system_first(text_of(document.get("instructions")), messages_of(history(request).items)),
            tools=tuple(tools_of(listed(document.get("tools")))),
            max_tokens=counted(document.get("max_output_tokens")),
            schema=schema_of(mapped(mapped(document.get("text")).get("format"))),
        )

    def error_event(self, refusal: Refusal, exchange: Exchange, number: int) -> bytes:
        return event(encode({"type": "error", "error": self.described(refusal), "sequence_number": number}), "error")

    def aside(self, request: Request, models: Models) -> Response | None:
        """Answer for stored responses, their input items, and `POST /v1/responses/input_tokens`."""
        if request.path == "/v1/responses/input_tokens" and request.method == "POST":
            kind = {"object": "response.input_tokens"}
            return self.counted(request, models, lambda count: kind | {"input_tokens": count})
        if not request.key:
            return self.error(self.NO_KEY, request)
        id_, _, what = request.path.removeprefix("/v1/responses").strip("/").partition("/")
        stored = request.memory.get(id_)
        if not isinstance(stored, Stored):
            unknown = Refusal(404, f"Response with id '{id_}' not found.", "invalid_request_error")
            return self.error(unknown, request) if id_ else None
        return _stored(request, id_, what, stored)


OPENAI_RESPONSES: Final = _OpenAIResponses()


def _stored(request: Request, id_: str, what: str, stored: Stored) -> Response | None:
    match request.method, what:
        case "GET" | "HEAD", "":
            return Response.of(stored.body)
        case "GET" | "HEAD", "input_items":
            ends = {"first_id": None, "last_id": None, "has_more": False}
            return Response.of({"object": "list", "data": stored.given[::-1], **ends})
        case "DELETE", "":
            request.memory.drop(id_)
            return Response.of({"id": id_, "object": "response", "deleted": True})
    return None
