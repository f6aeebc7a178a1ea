"""Server-sent events, as both providers frame them."""

from __future__ import annotations

import json


def encode(value: object) -> bytes:
    """Write compact JSON; characters beyond ASCII stay as they are, so that a cut can fall inside one."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
    return text.encode("utf-8", errors="replace")


def event(data: bytes, name: str = "") -> bytes:
    """Frame one event.

    >>> event(b"{}", "ping")
    b'event: ping\\ndata: {}\\n\\n'
    """
    line = f"event: {name}\n".encode() if name else b""
    return line + b"data: " + data + b"\n\n"
