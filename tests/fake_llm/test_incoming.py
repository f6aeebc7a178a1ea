"""Requests are read from bytes in any pieces."""

from __future__ import annotations

import gzip
import json
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wedgehog.fake_llm.http_request import LARGEST_BODY, Incoming, RequestReader
from wedgehog.fake_llm.request import json_object

LENGTH = b"POST /v1/a%20b?x=1&y= HTTP/1.1\r\nHost: h\r\nX-Key: one\r\nx-key:two \r\nContent-Length: 5\r\n\r\nhello"
CHUNKS = b"POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nhel\r\n02\r\nlo\r\n0\r\nTrailer: x\r\n\r\n"
BARE = b"GET /models HTTP/1.0\r\n\r\n"


def read(data: bytes, *cuts: int) -> list[Incoming]:
    reader, edges = RequestReader(), [0, *sorted(cuts), len(data)]
    return [one for start, end in pairwise(edges) for one in reader.feed(data[start:end])]


@given(cuts=st.lists(st.integers(0, len(LENGTH + CHUNKS + BARE)), max_size=6))
def test_requests_are_the_same_however_their_bytes_are_cut(cuts: list[int]) -> None:
    """Three requests on one connection, in any number of pieces."""
    first, second, third = read(LENGTH + CHUNKS + BARE, *cuts)
    assert (first.head.method, first.head.path, first.head.query) == ("POST", "/v1/a b", {"x": "1", "y": ""})
    assert (first.head.headers["X-KEY"], first.head.headers.get("none", "no")) == ("one, two", "no")
    assert first.body == b"hello"
    assert (second.head.path, second.body, second.head.keep_alive) == ("/c", b"hello", True)
    assert (third.head.method, third.head.http_1_0, third.head.keep_alive, third.body) == ("GET", True, False, b"")
    assert [one.trouble for one in (first, second, third)] == [None] * 3


@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [("1.1", "", True), ("1.1", "close", False), ("1.0", "", False), ("1.0", "Keep-Alive", True)],
)
def test_a_client_says_if_it_comes_again(version: str, connection: str, kept: bool) -> None:
    """By its version, or by its `Connection` header."""
    (request,) = read(f"GET / HTTP/{version}\r\nConnection: {connection}\r\n\r\n".encode())
    assert request.head.keep_alive is kept


@pytest.mark.parametrize(
    ("coding", "packed"),
    [("gzip", gzip.compress(b"{}", mtime=0)), ("deflate", zlib.compress(b"{}")), ("identity", b"{}"), ("gzip", b"")],
)
def test_packed_bodies_are_unpacked(coding: str, packed: bytes) -> None:
    """Gzip and deflate, as official clients may send them; an empty body is valid in any coding."""
    head = f"POST / HTTP/1.1\r\nContent-Encoding: {coding}\r\nContent-Length: {len(packed)}\r\n\r\n"
    (request,) = read(head.encode() + packed)
    assert request.body == (b"{}" if packed else b"")


BAD = {
    "no HTTP": (b"hello\r\n\r\n", 400),
    "another version": (b"GET / HTTP/2.0\r\n\r\n", 400),
    "a field without a colon": (b"GET / HTTP/1.1\r\nHost\r\n\r\n", 400),
    "a field with a space": (b"GET / HTTP/1.1\r\nContent-Length : 5\r\n\r\nhello", 400),
    "no number": (b"POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\nhello", 400),
    "both framings": (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "no size": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400),
    "too large": (b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (LARGEST_BODY + 1), 413),
    "a chunk too large": (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % (LARGEST_BODY + 1), 413),
    "a head too large": (b"GET / HTTP/1.1\r\nX: " + b"x" * 2**17, 431),
    "cut gzip": (
        b"POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 12\r\n\r\n" + gzip.compress(b"{}")[:12],
        400,
    ),
    "unknown packing": (b"POST / HTTP/1.1\r\nContent-Encoding: zip\r\nContent-Length: 1\r\n\r\nx", 400),
}


@pytest.mark.parametrize(("data", "status"), BAD.values(), ids=BAD)
def test_what_cannot_be_read_is_the_last_of_its_connection(data: bytes, status: int) -> None:
    """After lost framing, no request is read."""
    (request,) = read(data + LENGTH)
    assert request.trouble is not None
    assert request.trouble.status == status


def test_a_client_that_waits_is_told_to_go_on() -> None:
    """Once, when its head is there and its body is not."""
    told: list[str] = []
    reader = RequestReader(lambda: told.append("go on"))
    assert reader.feed(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n") == []
    assert told == ["go on"]
    (request,) = reader.feed(b"{}")
    assert (request.body, told) == (b"{}", ["go on"])


BODIES = [
    b'{"a": [1, 1.50, 1e400, NaN, 123456789012345678901234567890], "d": 1, "d": "\\ud800"}',
    *('{"ü": "🦔"}'.encode(coding) for coding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32")),
    b'{"a": "\xed\xa0\x80"}',
    b' {"a": 1}\r\n',
    b'{"a": 1}x',
    b"[{}]",
    b'{"a":' * 100_000,
]


@given(st.sampled_from(BODIES), st.integers(0, 40), st.binary(max_size=2), st.integers(0, 2))
def test_a_body_is_read_as_json_loads_reads_it(body: bytes, at: int, noise: bytes, gone: int) -> None:
    """In any encoding, and with any error."""
    damaged = body[:at] + noise + body[at + gone :]
    try:
        expected = json.loads(damaged)
    except (ValueError, RecursionError):
        expected = None
    assert repr(json_object(damaged)) == repr(expected if isinstance(expected, dict) else None)
