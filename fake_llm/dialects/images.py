"""What the bytes of a picture or a PDF in base64 are: the format that they begin like, and a picture's size."""

import re
import struct
from base64 import b64decode
from typing import Final

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_FOR_URLS: Final = str.maketrans("-_", "+/")
_HEAD: Final = 32
"""This many characters of base64 hold the first bytes, which tell the format, and the size of a PNG."""
_PNG_SIZE: Final = slice(16, 24)
_BEGINS: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
KNOWN_FORMATS: Final = frozenset((*_BEGINS.values(), "image/webp"))
"""The media types whose beginnings are known."""


def is_base64(data: str) -> bool:
    """Return True for padded base64 in its usual alphabet."""
    return len(data) % 4 == 0 and _BASE64.fullmatch(data) is not None


def format_of(data: str) -> str | None:
    """Return the media type that the bytes of an image in base64 begin like, None if it is unknown.

    The alphabet for URLs and a missing padding are read too.

    >>> format_of("iVBORw0KGgo="), format_of("_9j_4AAQSkZJRg")
    ('image/png', 'image/jpeg')
    """
    head = _decoded(data[:_HEAD])
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINS.items() if head.startswith(beginning)), None)


def pixels_of(data: str) -> tuple[int, int] | None:
    """Return width and height of a PNG in base64, None for anything else.

    >>> pixels_of("iVBORw0KGgoAAAANSUhEUgAAAAEAAAACCAAAAAA=")
    (1, 2)
    """
    size = _decoded(data[:_HEAD])[_PNG_SIZE]
    if format_of(data) != "image/png" or len(size) < struct.calcsize(">II"):
        return None
    width, height = struct.unpack(">II", size)
    return width, height


def is_pdf(data: str) -> bool:
    """Return whether bytes in base64 have the beginning and the end of a PDF.

    >>> is_pdf("JVBERi0xLjQKJSVFT0YK"), is_pdf("JVBERi0xLjQgbm8=")
    (True, False)
    """
    content = _decoded(data)
    return content.startswith(b"%PDF-") and b"%%EOF" in content


def _decoded(data: str) -> bytes:
    """Return the bytes of base64 in either alphabet; a last character that is alone holds no byte."""
    digits = data.rstrip("=").translate(_FOR_URLS)
    digits = digits[: len(digits) - (len(digits) % 4 == 1)]
    return b64decode(digits + "=" * (-len(digits) % 4))
