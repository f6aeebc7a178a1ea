"""A reply's whole wire image: every byte, and so every offset, is known before the first one is written.

HTTP/1.1 200 OK ␍␊ … ␍␊␍␊ │ 5a ␍␊ event: message_start … ␍␊ │ 3f ␍␊ … ␍␊ │ … │ 0 ␍␊␍␊
◀──────── head ─────────▶ ◀──────── frame 1 ────────────▶ ◀─ frame 2 ─▶    ◀─ tail ▶
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import accumulate
from typing import Final

from wedgehog.fake_llm.frame import Frame
from wedgehog.fake_llm.observer import FrameMark

_PHRASES: Final = {529: "Overloaded"}

Headers = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Image:
    """`frames` hold their chunk framing; `endless` repeats for ever in place of the tail."""

    head: bytes
    frames: tuple[Frame, ...]
    tail: bytes = b""
    endless: Frame | None = None
    stream: bool = False
    closes: bool = False
    ends: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Count where each frame ends."""
        ends = tuple(accumulate(len(frame.data) for frame in self.frames))
        object.__setattr__(self, "ends", ends)

    @property
    def body(self) -> bytes:
        """All bytes after the head that are not endless."""
        return b"".join(frame.data for frame in self.frames) + self.tail

    @property
    def size(self) -> int:
        """How many bytes `body` has."""
        return (self.ends[-1] if self.ends else 0) + len(self.tail)

    @property
    def marks(self) -> tuple[FrameMark, ...]:
        """Where each frame ends, and what it delivers."""
        pairs = zip(self.ends, self.frames, strict=True)
        return tuple(FrameMark(end, frame.tokens, frame.completes) for end, frame in pairs)

    @property
    def paced(self) -> bool:
        """Tell if it takes time to write."""
        return self.endless is not None or any(frame.delay_s for frame in self.frames)

    @property
    def tokens(self) -> int:
        """Output tokens of the whole reply."""
        return self.frames[-1].tokens if self.frames else 0


def whole(status: int, body: bytes, headers: Headers, *, frame: Frame | None = None, closes: bool = False) -> Image:
    """Compile a reply that is sent in one piece; `frame` says what it delivers."""
    length = [("Content-Length", str(len(body))), ("Content-Type", "application/json")]
    head = _head(status, [*headers, *length], closes)
    return Image(head, (replace(frame or Frame(b""), data=body),), closes=closes)


def bodiless(image: Image) -> Image:
    """Return what a HEAD request gets: the same head alone."""
    return replace(image, frames=(), tail=b"")


def chunked(
    frames: Iterable[Frame],
    headers: Headers,
    *,
    endless: Frame | None = None,
    closes: bool = False,
    http_1_0: bool = False,
) -> Image:
    """Compile a streamed reply, one HTTP chunk per frame; for an HTTP/1.0 client no chunks, the close ends it."""
    framing = [] if http_1_0 else [("Transfer-Encoding", "chunked")]
    type_ = [("Content-Type", "text/event-stream; charset=utf-8"), ("Cache-Control", "no-cache")]
    closes = closes or http_1_0
    head = _head(HTTPStatus.OK, [*headers, *type_, *framing], closes)
    if http_1_0:
        return Image(head, tuple(frames), endless=endless, stream=True, closes=True)
    ping = _chunk(endless) if endless else None
    tail = b"" if endless else b"0\r\n\r\n"
    return Image(head, tuple(map(_chunk, frames)), tail, ping, stream=True, closes=closes)


def _chunk(frame: Frame) -> Frame:
    data = b"%x\r\n%b\r\n" % (len(frame.data), frame.data)
    return Frame(data, frame.delay_s, frame.tokens, frame.completes, frame.terminal)


def _head(status: int, headers: Headers, closes: bool) -> bytes:
    phrase = _PHRASES.get(status) or next((known.phrase for known in HTTPStatus if known == status), "Unknown")
    told = [*headers, ("Connection", "close" if closes else "keep-alive")]
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in told)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", errors="replace")
