"""A reply's whole wire image: every byte, and so every offset, is known before the first one is written.

HTTP/1.1 200 OK ␍␊ … ␍␊␍␊ │ 5a ␍␊ event: message_start … ␍␊ │ 3f ␍␊ … ␍␊ │ … │ 0 ␍␊␍␊
◀──────── head ─────────▶ ◀──────── frame 1 ────────────▶ ◀─ frame 2 ─▶    ◀─ tail ▶
                          ◀───────────────────────── body ─────────────────────────▶
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import accumulate
from typing import Final

from wedgehog.fake_llm.frame import Frame
from wedgehog.fake_llm.observer import FrameMark

_PHRASES: Final = {529: "Overloaded", **{known.value: known.phrase for known in HTTPStatus}}
_LAST_CHUNK: Final = b"0\r\n\r\n"

Headers = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Body:
    """All bytes after a head, chunk framing included, and what is known of them; `endless` repeats for ever after them.

    `marks` tell where each frame ends and what it delivers, `pauses` are (offset, seconds) before delayed frames.
    """

    data: bytes
    marks: tuple[FrameMark, ...]
    pauses: tuple[tuple[int, float], ...] = ()
    endless: Frame | None = None
    stream: bool = False
    ends: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Note where the frames end."""
        object.__setattr__(self, "ends", tuple(mark.end for mark in self.marks))


@dataclass(frozen=True, slots=True)
class Image:
    """A head and a body; `filled` are ids of the body and what stands in their place, letter for letter."""

    head: bytes
    told: Body
    closes: bool = False
    filled: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def body(self) -> bytes:
        """All bytes after the head that are not endless."""
        data = self.told.data
        for blank, id_ in self.filled:
            data = data.replace(blank, id_)
        return data

    @property
    def size(self) -> int:
        """How many bytes `body` has."""
        return len(self.told.data)

    @property
    def ends(self) -> tuple[int, ...]:
        """Where the frames end."""
        return self.told.ends

    @property
    def marks(self) -> tuple[FrameMark, ...]:
        """Where each frame ends, and what it delivers."""
        return self.told.marks

    @property
    def endless(self) -> Frame | None:
        """What repeats for ever after the body."""
        return self.told.endless

    @property
    def stream(self) -> bool:
        """Tell if it consists of events."""
        return self.told.stream

    @property
    def paced(self) -> bool:
        """Tell if it takes time to write."""
        return self.told.endless is not None or bool(self.told.pauses)

    @property
    def tokens(self) -> int:
        """Output tokens of the whole reply."""
        return self.told.marks[-1].tokens if self.told.marks else 0


def whole_body(body: bytes, frame: Frame | None = None) -> Body:
    """Compile a body that is sent in one piece; `frame` says what it delivers."""
    frame = frame or Frame(b"")
    return Body(body, (FrameMark(len(body), frame.tokens, frame.completes),))


def chunked_body(frames: Iterable[Frame], endless: Frame | None = None, *, http_1_0: bool = False) -> Body:
    """Compile a streamed body, one HTTP chunk per frame; for an HTTP/1.0 client no chunks, the close ends it."""
    frames = tuple(frames)
    pieces = [frame.data if http_1_0 else _chunk(frame.data) for frame in frames]
    starts = [0, *accumulate(map(len, pieces))]
    marks = tuple(FrameMark(end, f.tokens, f.completes) for end, f in zip(starts[1:], frames, strict=True))
    pauses = tuple((start, f.delay_s) for start, f in zip(starts, frames, strict=False) if f.delay_s)
    if endless and not http_1_0:
        endless = replace(endless, data=_chunk(endless.data))
    if not endless and not http_1_0:
        pieces.append(_LAST_CHUNK)
    return Body(b"".join(pieces), marks, pauses, endless, stream=True)


def whole(
    status: int, body: bytes, headers: Headers, *, content_type: str = "application/json", closes: bool = False
) -> Image:
    """Compile a reply that is sent in one piece."""
    told = whole_body(body)
    return Image(whole_head(status, told, headers, content_type, closes=closes), told, closes)


def bodiless(image: Image) -> Image:
    """Return what a HEAD request gets: the same head alone."""
    return replace(image, told=Body(b"", ()))


def chunked(
    frames: Iterable[Frame],
    headers: Headers,
    *,
    content_type: str = "text/event-stream; charset=utf-8",
    endless: Frame | None = None,
    closes: bool = False,
    http_1_0: bool = False,
) -> Image:
    """Compile a streamed reply."""
    told, closes = chunked_body(frames, endless, http_1_0=http_1_0), closes or http_1_0
    return Image(chunked_head(headers, content_type, closes=closes, http_1_0=http_1_0), told, closes)


def whole_head(status: int, body: Body, headers: Headers, content_type: str, *, closes: bool) -> bytes:
    """Write what comes before a body in one piece."""
    length = (("Content-Length", str(len(body.data))), ("Content-Type", content_type))
    return _head(status, [*headers, *length], closes)


def chunked_head(headers: Headers, content_type: str, *, closes: bool, http_1_0: bool) -> bytes:
    """Write what comes before a streamed body."""
    framing = () if http_1_0 else (("Transfer-Encoding", "chunked"),)
    return _head(200, [*headers, ("Content-Type", content_type), ("Cache-Control", "no-cache"), *framing], closes)


def phrase(status: int) -> str:
    """Name a status as a status line does."""
    return _PHRASES.get(status, "Unknown")


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _head(status: int, headers: Headers, closes: bool) -> bytes:
    told = "".join([f"{name}: {value}\r\n" for name, value in headers])
    ending = f"Connection: {'close' if closes else 'keep-alive'}\r\n\r\n"
    return f"HTTP/1.1 {status} {phrase(status)}\r\n{told}{ending}".encode("latin-1", errors="replace")
