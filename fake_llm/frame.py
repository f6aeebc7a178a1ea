"""One event of a streamed reply as bytes, and the JSON and server-sent events that it is made of."""

from __future__ import annotations

import json
from typing import Final

from wedgehog.fake_llm.value import value

_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict)
SSE: Final = "text/event-stream; charset=utf-8"


@value
class Frame:
    """Bytes that belong together, without the HTTP chunk around them.

    `delay_s` passes before it is written; `tokens` output tokens have been delivered once it has arrived
    (cumulative); with it a text block or a tool call is `completes`; `terminal` ends the reply's content.
    """

    data: bytes
    delay_s: float = 0
    tokens: int = 0
    completes: bool = False
    terminal: bool = False


def encode(value: object) -> bytes:
    """Write compact JSON; characters beyond ASCII stay as they are, so that a cut can fall inside one."""
    return _JSON.encode(value).encode("utf-8", errors="replace")


def event(data: bytes, name: str = "") -> bytes:
    """Frame one event.

    >>> event(b"{}", "ping")
    b'event: ping\\ndata: {}\\n\\n'
    """
    line = f"event: {name}\n".encode() if name else b""
    return line + b"data: " + data + b"\n\n"
