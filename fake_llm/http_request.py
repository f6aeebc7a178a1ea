"""Reads HTTP/1.x requests from a connection's bytes, without I/O.

bytes ─▶ RequestReader.feed ─▶ Incoming, Incoming, …        after one with `trouble` nothing more is read
"""

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode

from wedgehog.fake_llm.value import value

LARGEST_BODY: Final = 64 * 2**20
_LONGEST_HEAD: Final = 64 * 2**10
_END_OF_HEAD: Final = b"\r\n\r\n"
_START: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP/1\.([01])")
_FIELD: Final = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*", re.DOTALL)
_WINDOW_BITS: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_KEY_HEADERS: Final = ("x-api-key", "x-goog-api-key", "api-key")
"""Where Anthropic, Google and Azure expect the key; the others expect a bearer token."""
_UNDECODED: Final = "The request body could not be decoded"


class RequestHeaders(dict[str, str]):
    """Header fields by name in small letters, as `get` and `in` want it; the values of a repeated name are joined.

    >>> RequestHeaders({"content-type": "text/html"})["Content-Type"]
    'text/html'
    """

    def __missing__(self, name: str) -> str:
        """Return the value of a name that is not in small letters."""
        if name == name.lower():
            raise KeyError(name)
        return self[name.lower()]


class BadHttpError(Exception):
    """Why a request cannot be read, with the HTTP status for it."""

    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(message)
        self.status, self.message = status, message


@dataclass(frozen=True, eq=False)
class Head:
    """Request line and headers. A client sends few different heads, so derived values are cached."""

    method: str
    target: str
    http_1_0: bool
    headers: Mapping[str, str] = field(repr=False)

    @cached_property
    def path(self) -> str:
        """The target's path, decoded."""
        path = self.target.partition("?")[0]
        if not path.startswith("/") and "://" in path:
            path = "/" + path.partition("://")[2].partition("/")[2]
        return unquote(path) if "%" in path else path

    @cached_property
    def query(self) -> Mapping[str, str]:
        """The target's query; the last value of a repeated name counts."""
        found = self.target.partition("?")[2]
        return dict(parse_qsl(found, keep_blank_values=True)) if found else {}

    @cached_property
    def target_without_key(self) -> str:
        """The target without an API key in its query (Gemini)."""
        query = self.query
        if "key" not in query:
            return self.target
        rest = urlencode({name: value for name, value in query.items() if name != "key"})
        return self.target.partition("?")[0] + (f"?{rest}" if rest else "")

    @cached_property
    def keep_alive(self) -> bool:
        """True if the client wants to use the connection again."""
        wanted = self.headers.get("connection", "").lower()
        return "keep-alive" in wanted if self.http_1_0 else "close" not in wanted

    @cached_property
    def key(self) -> str:
        """The API key from any provider's header or from the query, else ""."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        named = next(filter(None, map(self.headers.get, _KEY_HEADERS)), "")
        return named or (token.strip() if scheme.lower() == "bearer" else "") or self.query.get("key", "")

    @cached_property
    def length(self) -> int | None:
        """The body's length in bytes, None for a chunked body."""
        coding, length = self.headers.get("transfer-encoding"), self.headers.get("content-length", "0")
        if coding is not None and (coding.lower() != "chunked" or "content-length" in self.headers or self.http_1_0):
            raise BadHttpError(400, "Transfer-Encoding is not understood.")
        if not (length.isascii() and length.isdigit()) or len(length) > 18:
            raise BadHttpError(400, "Content-Length is not a number.")
        if int(length) > LARGEST_BODY:
            raise BadHttpError(413)
        return int(length) if coding is None else None

    @cached_property
    def waits(self) -> bool:
        """True if the client waits for `100 Continue` before it sends the body."""
        return self.headers.get("expect", "").lower() == "100-continue"

    @cached_property
    def coding(self) -> str:
        """The body's content coding."""
        return self.headers.get("content-encoding", "identity").lower()


@value
class Incoming:
    """A request as it arrived, with a whole, decompressed body, or with `trouble`."""

    head: Head
    body: bytes = field(default=b"", repr=False)
    trouble: BadHttpError | None = None
    overlaps: bool = False
    """Whether it came while an earlier one was being answered."""


class RequestReader:
    """Collects one connection's bytes into requests; `go_ahead` is called when a client waits for `100 Continue`."""

    def __init__(self, go_ahead: Callable[[], None] = lambda: None) -> None:
        self._bytes = bytearray()
        self._go_ahead = go_ahead
        self._head: Head | None = None
        self._length = 0
        self._chunks: list[bytes] | None = None
        self._lost = False

    def feed(self, data: bytes | memoryview) -> list[Incoming]:
        """Take bytes and return the requests that they complete."""
        if self._lost:
            return []
        self._bytes += data
        found: list[Incoming] = []
        while self._bytes and not self._lost:
            try:
                request = self._next()
            except BadHttpError as unreadable:
                self._lost = True
                head = self._head or Head("GET", "/", False, RequestHeaders({}))
                request = Incoming(head, trouble=unreadable)
            if request is None:
                break
            self._head, self._chunks = None, None
            found.append(request)
        return found

    def _next(self) -> Incoming | None:
        if self._head is None:
            end = self._bytes.find(_END_OF_HEAD)
            if (end if end >= 0 else len(self._bytes)) > _LONGEST_HEAD:
                raise BadHttpError(431, "Request header fields too large.")
            if end < 0:
                return None
            head = bytes(self._bytes[:end])
            del self._bytes[: end + len(_END_OF_HEAD)]
            self._head = _read_head(head)
            self._length, self._chunks = self._head.length or 0, [] if self._head.length is None else None
            if self._head.waits:
                self._go_ahead()
        body = self._chunked() if self._chunks is not None else self._measured()
        return None if body is None else Incoming(self._head, _unpacked(body, self._head.coding))

    def _measured(self) -> bytes | None:
        if len(self._bytes) < self._length:
            return None
        body = bytes(self._bytes[: self._length])
        del self._bytes[: self._length]
        return body

    def _chunked(self) -> bytes | None:
        assert self._chunks is not None  # noqa: S101
        while True:
            end = self._bytes.find(b"\r\n")
            if end < 0:
                return None
            size = bytes(self._bytes[:end]).partition(b";")[0].strip()
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
                raise BadHttpError(400, f"{_UNDECODED}: {size[:20]!r} is no size of a chunk")
            count = int(size, 16)
            if count == 0:
                return self._trailed(end)
            if self._length + count > LARGEST_BODY:
                raise BadHttpError(413)
            if len(self._bytes) < end + 2 + count + 2:
                return None
            self._chunks.append(bytes(self._bytes[end + 2 : end + 2 + count]))
            self._length += count
            del self._bytes[: end + 2 + count + 2]

    def _trailed(self, end: int) -> bytes | None:
        """Skip the trailers after the last chunk, up to the empty line."""
        last = end if self._bytes[end : end + 4] == _END_OF_HEAD else self._bytes.find(_END_OF_HEAD, end)
        if last < 0:
            return None
        del self._bytes[: last + 4]
        return b"".join(self._chunks or [])


@lru_cache(maxsize=64)  # a client's requests have few different heads
def _read_head(head: bytes) -> Head:
    first, *lines = head.decode("latin-1").lstrip("\r\n").split("\r\n")
    start = _START.fullmatch(first)
    if start is None:
        raise BadHttpError(400, "The request line is not understood.")
    fields: dict[str, str] = {}
    for line in lines:
        found = _FIELD.fullmatch(line)
        if found is None:
            raise BadHttpError(400, "A header field is not understood.")
        name, value = found[1].lower(), found[2]
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return Head(start[1], start[2], start[3] == "0", RequestHeaders(fields))


def _unpacked(body: bytes, coding: str) -> bytes:
    if coding == "identity" or not body:
        return body
    if coding not in _WINDOW_BITS:
        raise BadHttpError(400, f"{_UNDECODED}: {coding} is not known")
    unpacker = zlib.decompressobj(_WINDOW_BITS[coding])
    try:
        unpacked = unpacker.decompress(body, LARGEST_BODY + 1)
    except zlib.error as broken:
        raise BadHttpError(400, f"{_UNDECODED}: {broken}") from broken
    if len(unpacked) > LARGEST_BODY:
        raise BadHttpError(413)
    if not unpacker.eof:
        raise BadHttpError(400, f"{_UNDECODED}: it ends too early")
    return unpacked
