"""One event of a streamed reply as bytes, and the JSON and server-sent events that it is made of."""

import json
from typing import Final

from wedgehog.fake_llm.value import value

_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict)
SSE: Final = "text/event-stream; charset=utf-8"


@value
class Frame:
    """The bytes of one event, without the HTTP chunk around them.

    `delay_s` passes before it is written; `tokens` counts the output tokens delivered with it and before it;
    `completes`: it completes a text or a tool call; `terminal`: it ends the reply's content.
    """

    data: bytes
    delay_s: float = 0
    tokens: int = 0
    completes: bool = False
    terminal: bool = False


def encode(value: object) -> bytes:
    """Write compact JSON; non-ASCII characters are not escaped, so that a cut can split one."""
    return _JSON.encode(value).encode("utf-8", errors="replace")


def event(data: bytes, name: str = "") -> bytes:
    """Frame one event.

    >>> event(b"{}", "ping")
    b'event: ping\\ndata: {}\\n\\n'
    """
    line = f"event: {name}\n".encode() if name else b""
    return line + b"data: " + data + b"\n\n"
