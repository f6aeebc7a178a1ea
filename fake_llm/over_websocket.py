"""A provider's replies as messages of a WebSocket, and its messages as requests.

{"type": "response.create", "model": …, "input": …}  ─▶ Request        one at a time, in their order
text frame, text frame, … ◀─ the events of the stream; {"type": "error", "status": 429, …} ◀─ a refusal
"""

from collections.abc import Mapping
from typing import Any, Final

from wedgehog.fake_llm import websocket
from wedgehog.fake_llm.dialects.base import Response
from wedgehog.fake_llm.edits import Edited
from wedgehog.fake_llm.frame import encode
from wedgehog.fake_llm.http_request import BadHttpError
from wedgehog.fake_llm.observer import FrameMark
from wedgehog.fake_llm.request import json_object
from wedgehog.fake_llm.wire_reply import Body, WireReply, framed

PATH: Final = "/v1/responses"
CREATE: Final = "response.create"
_UNKNOWN: Final = "Invalid value: {!r}. Supported values are: 'response.create'."
_STREAMS: Final = "Unknown parameter: 'stream_id'. Open a connection for each stream."


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


def refused(told: Response, headers: Mapping[str, str], *, closes: bool) -> WireReply:
    """A refusal as one event, with the headers that tell a client when to come again."""
    error = (json_object(told.body) or {}).get("error") or {"type": "server_error", "message": told.message}
    event = {"type": "error", "status": told.status, "error": error}
    named = {name.lower(): given for name, given in headers.items()}
    data = websocket.text(encode(event | ({"headers": named} if named else {})))
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
