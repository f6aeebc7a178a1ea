"""A provider's replies as messages of a WebSocket, and its messages as requests.

{"type": "response.create", "model": …, "input": …}  ─▶ Request        one at a time, in their order
text frame, text frame, … ◀─ the events of the stream; {"type": "error", "status": 429, …} ◀─ a refusal

Responses: each message is a request. Realtime: a session, whose conversation the server keeps, obeys most of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from wedgehog.fake_llm import websocket
from wedgehog.fake_llm.dialects.openai_realtime import wire as realtime
from wedgehog.fake_llm.dialects.openai_realtime.names import names_for
from wedgehog.fake_llm.dialects.openai_realtime.session import RealtimeSession
from wedgehog.fake_llm.edits import Edited
from wedgehog.fake_llm.frame import encode
from wedgehog.fake_llm.http_request import BadHttpError, Head, Incoming
from wedgehog.fake_llm.observer import FrameMark
from wedgehog.fake_llm.request import ConnectionMemory, Request, json_object
from wedgehog.fake_llm.wire_reply import Body, WireReply, framed

PATHS: Final = ("/v1/responses", realtime.PATH)
CREATE: Final = "response.create"
_UNKNOWN: Final = "Invalid value: {!r}. Supported values are: 'response.create'."
_STREAMS: Final = "Unknown parameter: 'stream_id'. Open a connection for each stream."


def opened(request: Request, head: Head, number: int) -> tuple[ConnectionMemory, bytes]:
    """What connection `number` remembers, and the frames that it begins with."""
    if request.path != realtime.PATH:
        return ConnectionMemory(request.memory), b""
    model = request.query.get("model") or request.query.get("deployment", "")
    session = RealtimeSession(request.memory, model, number, names_for(head.headers))
    return session, messages([session.opening()])


def obeyed(memory: ConnectionMemory | None, incoming: Incoming, *, strict: bool) -> bytes | None:
    """The frames that answer a message which is no request; None: it is one."""
    if not isinstance(memory, RealtimeSession):
        return None
    told = memory.take(json_object(incoming.body), strict=strict, overlaps=incoming.overlaps)
    return None if told is None else messages(told)


def meant(request: Request, incoming: Incoming, memory: ConnectionMemory) -> tuple[Request, Incoming]:
    """A message of a WebSocket as the request that it means."""
    document = request.document
    over = replace(request, memory=memory, websocket=True)
    if not isinstance(memory, RealtimeSession):
        return replace(over, document=asked_in(document)), replace(incoming, trouble=trouble(document))
    whole = None if document is None else memory.asked(document)
    return replace(over, document=whole, body=request.body if whole is document else encode(whole)), incoming


def asked_in(document: dict[str, Any] | None) -> dict[str, Any] | None:
    """The request in a message, as it would be posted; it always streams."""
    if document is None or document.get("type") != CREATE:
        return document
    return {name: given for name, given in document.items() if name != "type"} | {"stream": True}


def trouble(document: dict[str, Any] | None) -> BadHttpError | None:
    """Why a message is no request; None: it is one, or its dialect refuses it."""
    if document is None:
        return None
    if document.get("type") != CREATE:
        return BadHttpError(400, _UNKNOWN.format(document.get("type")))
    return BadHttpError(400, _STREAMS) if document.get("stream_id") is not None else None


def warms(document: Mapping[str, Any] | None) -> bool:
    """Whether a request only prepares the next one, without a reply of the model."""
    return document is not None and document.get("generate") is False


def streamed(edited: Edited, *, closes: bool) -> WireReply:
    """A stream's events as text frames, then a close frame if the reply ends its connection."""
    closing = edited.closing or ((websocket.GOING_AWAY, "") if closes else None)
    last = websocket.close(*closing) if closing else b""
    told = framed(edited.frames, edited.endless, edited.names, _message, last)
    return WireReply(b"", told, closing is not None)


def messages(events: Iterable[Mapping[str, Any]]) -> bytes:
    """Events as text frames."""
    return b"".join([websocket.text(encode(event)) for event in events])


def refused(events: Iterable[Mapping[str, Any]], *, closes: bool) -> WireReply:
    """The events of a refusal."""
    data = messages(events)
    last = websocket.close(websocket.GOING_AWAY) if closes else b""
    return WireReply(b"", Body(data + last, (FrameMark(len(data), 0, False),)), closes)


def _message(event: bytes) -> bytes:
    """A server-sent event as a frame; a comment, which keeps a stream alive, is a ping.

    >>> _message(b"event: x\\ndata: {}\\n\\n"), _message(b": ping\\n\\n")
    (b'\\x81\\x02{}', b'\\x89\\x00')
    """
    if event.startswith(b":"):
        return websocket.ping()
    return websocket.text(event.partition(b"data: ")[2].removesuffix(b"\n\n"))
