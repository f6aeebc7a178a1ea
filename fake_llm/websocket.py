"""The server's side of a WebSocket (RFC 6455), without I/O: the handshake, the client's frames, and our frames.

GET /v1/responses, Upgrade: websocket ─▶ accepted ─▶ 101
frame, frame, … ─▶ FrameReader.feed ─▶ Incoming, …      each text message is a request; pings and closes are told apart
"""

from base64 import b64decode, b64encode
from binascii import Error as NoBase64Error
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha1
from typing import Final

from wedgehog.fake_llm.http_request import LARGEST_BODY, BadHttpError, Head, Incoming

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
PROTOCOL_ERROR: Final = 1002
TOO_BIG: Final = 1009

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES: Final = 16
_MORE, _TEXT, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
_LONGEST_CONTROL: Final = 125


class WebSocketError(Exception):
    """Why the connection is closed, with the close code for it."""

    def __init__(self, code: int, message: str) -> None:
        """The message becomes the reason of the close frame."""
        super().__init__(message)
        self.code, self.message = code, message


def is_asked(head: Head) -> bool:
    """Whether a request wants to go on as a WebSocket."""
    return head.method == "GET" and head.headers.get("upgrade", "").lower() == "websocket"


def trouble(head: Head) -> BadHttpError | None:
    """Why the handshake is refused; None: it is right."""
    try:
        length = len(b64decode(head.headers.get("sec-websocket-key", ""), validate=True))
    except NoBase64Error:
        length = 0
    if length != _KEY_BYTES or head.headers.get("sec-websocket-version") != "13" or head.http_1_0:
        return BadHttpError(400, "The WebSocket handshake is not understood.")
    return None


def accepted(head: Head) -> bytes:
    """The answer to a handshake.

    >>> from wedgehog.fake_llm.http_request import Head
    >>> head = Head("GET", "/", False, {"sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="})
    >>> b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in accepted(head)
    True
    """
    digest = sha1(head.headers["sec-websocket-key"].encode() + _GUID, usedforsecurity=False).digest()
    lines = (b"HTTP/1.1 101 Switching Protocols", b"Upgrade: websocket", b"Connection: Upgrade")
    return b"\r\n".join((*lines, b"Sec-WebSocket-Accept: " + b64encode(digest), b"", b""))


def frame(kind: int, data: bytes) -> bytes:
    """One frame of the server, which masks nothing.

    >>> text(b"{}"), close(1000), ping()
    (b'\\x81\\x02{}', b'\\x88\\x02\\x03\\xe8', b'\\x89\\x00')
    """
    size = len(data)
    if size <= _LONGEST_CONTROL:
        return bytes((0x80 | kind, size)) + data
    wide = 2 if size < 1 << 16 else 8
    return bytes((0x80 | kind, 126 if wide == 2 else 127)) + size.to_bytes(wide, "big") + data


def text(data: bytes) -> bytes:
    """A text message."""
    return frame(_TEXT, data)


def ping() -> bytes:
    """A ping without a payload."""
    return frame(_PING, b"")


def close(code: int, reason: str = "") -> bytes:
    """A close frame; a reason that is too long is cut."""
    said = reason.encode()[: _LONGEST_CONTROL - 2].decode(errors="ignore").encode()
    return frame(_CLOSE, code.to_bytes(2, "big") + said)


class FrameReader:
    """Collects the client's frames into requests of the handshake's `head`.

    `control` gets each frame that must be sent back at once: a pong, or a close frame, after which nothing is read.
    """

    def __init__(self, head: Head, control: Callable[[bytes, bool], None]) -> None:
        """`control(frame, closes)` sends a control frame."""
        self._head = replace(head, method="POST")
        self._control = control
        self._bytes = bytearray()
        self._message: bytearray | None = None
        self._over = False

    def feed(self, data: bytes | memoryview) -> list[Incoming]:
        """Take bytes and return the messages that they complete."""
        self._bytes += data
        found: list[Incoming] = []
        try:
            while not self._over and (read := self._next()) is not None:
                whole = self._taken(*read)
                if whole is not None:
                    found.append(Incoming(self._head, whole))
        except WebSocketError as wrong:
            self._end(close(wrong.code, wrong.message))
        return found

    def _end(self, answer: bytes) -> None:
        self._over = True
        self._control(answer, True)

    def _next(self) -> tuple[int, bool, bytes] | None:
        """Remove one whole frame: its kind, whether it is final, its payload."""
        data = self._bytes
        if len(data) < 2:
            return None
        size, at = data[1] & 0x7F, 2
        if size > _LONGEST_CONTROL:
            at = 4 if size == 126 else 10
            size = int.from_bytes(data[2:at], "big") if len(data) >= at else 0
        if not data[1] & 0x80 or data[0] & 0x70:
            raise WebSocketError(PROTOCOL_ERROR, "a frame must be masked and use no extension")
        if size > LARGEST_BODY:
            raise WebSocketError(TOO_BIG, "the message is too big")
        end = at + 4 + size
        if len(data) < end:
            return None
        payload = _unmasked(bytes(data[at + 4 : end]), bytes(data[at : at + 4]))
        kind, final = data[0] & 0x0F, bool(data[0] & 0x80)
        del data[:end]
        return kind, final, payload

    def _taken(self, kind: int, final: bool, payload: bytes) -> bytes | None:
        """A message that this frame completes."""
        if kind == _CLOSE:
            self._end(frame(_CLOSE, payload[:2]))
        elif kind == _PING:
            self._control(frame(_PONG, payload), False)
        elif kind in (_MORE, _TEXT, _BINARY):
            return self._part(kind, final, payload)
        elif kind != _PONG:
            raise WebSocketError(PROTOCOL_ERROR, "the kind of frame is not known")
        return None

    def _part(self, kind: int, final: bool, payload: bytes) -> bytes | None:
        if (kind == _MORE) == (self._message is None):
            raise WebSocketError(PROTOCOL_ERROR, "a message begins with a text frame and goes on with continuations")
        self._message = (self._message or bytearray()) + payload
        if len(self._message) > LARGEST_BODY:
            raise WebSocketError(TOO_BIG, "the message is too big")
        if not final:
            return None
        whole, self._message = bytes(self._message), None
        return whole


def _unmasked(data: bytes, mask: bytes) -> bytes:
    size = len(data)
    pattern = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(pattern, "big")).to_bytes(size, "big")
