"""A reply as bytes: every byte, and so every offset, is known before the first byte is written.

HTTP/1.1 200 OK ␍␊ … ␍␊␍␊ │ 5a ␍␊ event: message_start … ␍␊ │ 3f ␍␊ … ␍␊ │ … │ 0 ␍␊␍␊
◀──────── head ─────────▶ ◀──────── frame 1 ────────────▶ ◀─ frame 2 ─▶    ◀─ tail ▶
                          ◀───────────────────────── body ─────────────────────────▶
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import accumulate
from typing import Final, Self

from wedgehog.fake_llm.frame import Frame
from wedgehog.fake_llm.observer import FrameMark
from wedgehog.fake_llm.value import value

_PHRASES: Final = {529: "Overloaded", **{known.value: known.phrase for known in HTTPStatus}}
_NOTHING: Final = Frame(b"")
_LAST_CHUNK: Final = b"0\r\n\r\n"

ResponseHeaders = Iterable[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Body:
    """All bytes after a head, chunk framing included; after them `endless` repeats without end.

    `marks` say where each frame ends and what it delivers; `pauses` are (offset, seconds) before delayed frames.
    """

    data: bytes
    marks: tuple[FrameMark, ...]
    pauses: tuple[tuple[int, float], ...] = ()
    endless: Frame | None = None
    stream: bool = False
    edited: tuple[str, ...] = ()
    """The names of the edits that apply to the reply."""
    ends: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Set `ends`, the offsets at which frames end."""
        object.__setattr__(self, "ends", tuple(mark.end for mark in self.marks))


@dataclass(frozen=True, slots=True)
class Stencil:
    """Bytes whose ids can be replaced. They are cut at the id that occurs most often.

    >>> Stencil.of(b"[x1, y1, x1]", [b"y1", b"x1"]).filled([b"y2", b"x2"])
    b'[x2, y2, x2]'
    """

    pieces: tuple[bytes, ...]
    cut: int = 0
    others: tuple[tuple[int, bytes], ...] = ()

    @classmethod
    def of(cls, data: bytes, ids: Sequence[bytes]) -> Self:
        """Cut `data` at the most frequent id, and list the others that occur."""
        if not ids:
            return cls((data,))
        counts = [data.count(id_) for id_ in ids]
        cut = counts.index(max(counts))
        others = tuple((number, id_) for number, id_ in enumerate(ids) if counts[number] and number != cut)
        return cls(tuple(data.split(ids[cut])), cut, others)

    def moved(self, times: Iterable[tuple[bytes, bytes]]) -> Self:
        """Return the stencil with each of these old times replaced by its new one."""
        pieces = self.pieces
        for old, new in times:
            pieces = tuple([piece.replace(old, new) for piece in pieces])
        return replace(self, pieces=pieces)

    def filled(self, ids: Sequence[bytes]) -> bytes:
        """Return the bytes with these ids, of the same lengths, in place of the old ones."""
        data = ids[self.cut].join(self.pieces) if ids else self.pieces[0]
        for number, blank in self.others:
            data = data.replace(blank, ids[number])
        return data


@value
class WireReply:
    """A head and a body; if there is a `stencil` of the body, it is filled with `ids`."""

    head: bytes
    told: Body
    closes: bool = False
    stencil: Stencil | None = None
    ids: tuple[bytes, ...] = ()

    @property
    def body(self) -> bytes:
        """All bytes after the head, without the endless part."""
        return self.stencil.filled(self.ids) if self.stencil else self.told.data

    @property
    def size(self) -> int:
        """The length of `body` in bytes."""
        return len(self.told.data)

    @property
    def paced(self) -> bool:
        """True if writing the reply takes time."""
        return self.told.endless is not None or bool(self.told.pauses)

    @property
    def tokens(self) -> int:
        """Output tokens of the whole reply."""
        return self.told.marks[-1].tokens if self.told.marks else 0


def whole(
    status: int,
    body: bytes,
    headers: ResponseHeaders,
    *,
    frame: Frame = _NOTHING,
    edited: tuple[str, ...] = (),
    content_type: str = "application/json",
    closes: bool = False,
) -> WireReply:
    """Compile a reply that is not streamed; `frame` says what it delivers."""
    length = (("Content-Length", str(len(body))), ("Content-Type", content_type))
    told = Body(body, (FrameMark(len(body), frame.tokens, frame.completes),), edited=edited)
    return WireReply(_head(status, [*headers, *length], closes), told, closes)


def bodiless(wire_reply: WireReply) -> WireReply:
    """Return the answer to a HEAD request: the same head without a body."""
    return replace(wire_reply, told=Body(b"", ()))


def chunked(
    frames: Iterable[Frame],
    headers: ResponseHeaders,
    *,
    content_type: str = "text/event-stream; charset=utf-8",
    endless: Frame | None = None,
    edited: tuple[str, ...] = (),
    closes: bool = False,
    http_1_0: bool = False,
) -> WireReply:
    """Compile a streamed reply, one HTTP chunk per frame; for HTTP/1.0 without chunks, ended by the close."""
    wrap, last = (bytes, b"") if http_1_0 else (_chunk, _LAST_CHUNK)
    told, closes = framed(frames, endless, edited, wrap, last), closes or http_1_0
    framing = () if http_1_0 else (("Transfer-Encoding", "chunked"),)
    fields = [*headers, ("Content-Type", content_type), ("Cache-Control", "no-cache"), *framing]
    return WireReply(_head(200, fields, closes), told, closes)


def phrase(status: int) -> str:
    """Return a status's reason phrase."""
    return _PHRASES.get(status, "Unknown")


def framed(
    frames: Iterable[Frame],
    endless: Frame | None,
    edited: tuple[str, ...],
    wrap: Callable[[bytes], bytes],
    last: bytes,
) -> Body:
    """Compile a stream's body: `wrap` puts the transport's framing around an event, `last` follows the last one."""
    frames = tuple(frames)
    pieces = [wrap(frame.data) for frame in frames]
    starts = [0, *accumulate(map(len, pieces))]
    marks = tuple(FrameMark(end, f.tokens, f.completes) for end, f in zip(starts[1:], frames, strict=True))
    pauses = tuple((start, f.delay_s) for start, f in zip(starts, frames, strict=False) if f.delay_s)
    if endless:
        endless = replace(endless, data=wrap(endless.data))
    else:
        pieces.append(last)
    return Body(b"".join(pieces), marks, pauses, endless, stream=True, edited=edited)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _head(status: int, headers: ResponseHeaders, closes: bool) -> bytes:
    told = "".join([f"{name}: {value}\r\n" for name, value in headers])
    ending = f"Connection: {'close' if closes else 'keep-alive'}\r\n\r\n"
    return f"HTTP/1.1 {status} {phrase(status)}\r\n{told}{ending}".encode("latin-1", errors="replace")
