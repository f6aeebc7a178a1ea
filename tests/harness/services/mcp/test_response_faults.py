"""Harm to a tool's response between the mcp package and its transport; nothing is written before the harness agrees."""

import io
import json
from typing import Any

import pytest

from wedgehog.harness.services.mcp.response_faults import CountedStream, HttpResponses, ResponseFaults, StdioResponses

TOKEN = "wbcdf1x1x1"
REPLY = json.dumps({"jsonrpc": "2.0", "id": 3, "result": {"content": [{"type": "text", "text": f"21\n{TOKEN}"}]}})
EVENT = f"event: message\r\ndata: {REPLY}\r\n\r\n".encode()
CLIENT = ("127.0.0.1", 5)


class Agreeing:
    """The harness, who agrees with everything and remembers."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    async def __call__(self, do: str, *, token: str, client: Any, written: int) -> None:
        self.heard.append((do, token))


@pytest.fixture
def harness() -> Agreeing:
    return Agreeing()


def disturbed(harness: Agreeing, copies: int = 1, broken: bool = False) -> ResponseFaults:
    found = ResponseFaults(harness)
    found.expect(TOKEN, copies, broken)
    return found


async def line(harness: Agreeing, copies: int = 1, broken: bool = False) -> list[bytes]:
    """What comes out over stdio."""
    out = io.BytesIO()
    await StdioResponses(disturbed(harness, copies, broken), out).write(REPLY + "\n")
    return out.getvalue().splitlines()


async def test_a_line_is_written_as_it_is(harness: Agreeing):
    """The harness allows it first, and is notified after the write."""
    assert await line(harness) == [REPLY.encode()]
    assert harness.heard == [("write", TOKEN), ("written", TOKEN)]


async def test_a_line_that_comes_twice_is_two_whole_lines(harness: Agreeing):
    """Both parse."""
    assert [json.loads(one) for one in await line(harness, copies=2)] == [json.loads(REPLY)] * 2


async def test_a_broken_line_is_a_line_and_no_json(harness: Agreeing):
    """Whoever reads lines goes on with the next one."""
    (one,) = await line(harness, broken=True)
    assert REPLY.encode().startswith(one)
    with pytest.raises(json.JSONDecodeError):
        json.loads(one)


async def test_other_messages_pass_unasked(harness: Agreeing):
    """Only results are waited for over stdio."""
    out = io.BytesIO()
    await StdioResponses(disturbed(harness, copies=2), out).write('{"id": 1}\n')
    assert (out.getvalue(), harness.heard) == (b'{"id": 1}\n', [])


async def web(harness: Agreeing, kind: bytes, body: bytes, **form: Any) -> list[dict[str, Any]]:
    """What comes out over HTTP."""
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", kind), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await HttpResponses(disturbed(harness, **form)).around(app)({"type": "http", "client": CLIENT}, None, send)
    return sent


async def test_a_json_response_passes_as_it_is(harness: Agreeing):
    """Head and body each wait for the harness."""
    head, body = await web(harness, b"application/json", REPLY.encode())
    assert body["body"] == REPLY.encode()
    assert dict(head["headers"]) == {b"content-type": b"application/json", b"content-length": b"%d" % len(REPLY)}
    assert harness.heard == [("write", ""), ("write", TOKEN), ("written", TOKEN)]


async def test_a_json_response_that_comes_twice_is_a_stream_of_two_events(harness: Agreeing):
    """One JSON body holds one message; the length header is removed, because it would be wrong."""
    head, body = await web(harness, b"application/json", REPLY.encode(), copies=2)
    assert body["body"] == EVENT * 2
    assert dict(head["headers"]) == {b"content-type": b"text/event-stream"}


async def test_a_broken_json_response_has_the_length_that_it_says(harness: Agreeing):
    """No client can tell by the frame that something is missing."""
    head, body = await web(harness, b"application/json", REPLY.encode(), broken=True)
    assert REPLY.encode().startswith(body["body"]) and len(body["body"]) < len(REPLY)
    assert dict(head["headers"])[b"content-length"] == b"%d" % len(body["body"])


async def test_events_are_doubled_and_broken_whole(harness: Agreeing):
    """The frame of an event stays."""
    kind = b"text/event-stream; charset=utf-8"
    _, twice = await web(harness, kind, EVENT, copies=2)
    assert twice["body"] == EVENT * 2
    _, broken = await web(harness, kind, EVENT, broken=True)
    data = broken["body"].removeprefix(b"event: message\r\ndata: ").removesuffix(b"\r\n\r\n")
    assert broken["body"].endswith(b"\r\n\r\n")
    assert b"\n" not in data and REPLY.encode().startswith(data) and len(data) < len(REPLY)


async def test_responses_without_a_result_are_only_waited_for(harness: Agreeing):
    """A list of tools is not a result."""
    _, body = await web(harness, b"application/json", b"{}", copies=2)
    assert body["body"] == b"{}" and harness.heard == [("write", ""), ("write", "")]


def test_what_is_written_is_counted():
    """All else is the transport's own."""

    class Transport:
        said = b""

        def write(self, data: bytes) -> None:
            self.said += data

        def get_extra_info(self, name: str) -> str:
            return name

    counted = CountedStream(Transport())
    counted.write(b"abc")
    counted.write(b"de")
    assert (counted.written, counted.said, counted.get_extra_info("peername")) == (5, b"abcde", "peername")
