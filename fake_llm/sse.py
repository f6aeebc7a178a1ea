"""Server-sent events, as both providers frame them."""

from __future__ import annotations

import json
from typing import Final

_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=dict)


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
