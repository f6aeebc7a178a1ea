"""What an image's bytes are: whether they are base64, and which format they begin like."""

import re
from base64 import b64decode
from typing import Final

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_HEAD: Final = 24
"""This many characters of base64 hold the first bytes, which tell the format."""
_BEGINS: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


def is_base64(data: str) -> bool:
    """Return True for padded base64 in its usual alphabet."""
    return len(data) % 4 == 0 and _BASE64.fullmatch(data) is not None


def format_of(data: str) -> str | None:
    """Return the media type that the bytes of an image in base64 begin like, None if it is unknown.

    >>> format_of("iVBORw0KGgo=")
    'image/png'
    """
    head = b64decode(data[:_HEAD])
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINS.items() if head.startswith(beginning)), None)
