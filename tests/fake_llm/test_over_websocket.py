"""The Responses API over a WebSocket, as the official SDK speaks it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from wedgehog.fake_llm.edit_kinds import ClosedSocket, EarlyEnd, PingsOnly
from wedgehog.fake_llm.http_request import Head
from wedgehog.fake_llm.observer import RefusalSent, RequestSeen, WriteEnded, WriteStarted
from wedgehog.fake_llm.reply import Failure, Reply, Text, ToolCall
from wedgehog.fake_llm.server import FakeLLM
from wedgehog.fake_llm.websocket import FrameReader, text

websockets = pytest.importorskip("websockets", reason="the OpenAI package needs websockets for this")

HELLO = Reply((Text("Hello there, how are you?"),))
CALL = Reply((ToolCall("weather", {"city": "Rome"}, "1x1"),))
ASK = {"model": "gpt-5", "input": "Hello"}
TERMINAL = ("response.completed", "response.incomplete", "response.failed", "error")
Connect = Callable[..., Any]


@pytest.fixture
def openai() -> Any:
    """The SDK. Not imported when tests are collected: that takes half a second, and each worker collects all tests."""
    return pytest.importorskip("openai", reason="the OpenAI package is not installed")


@pytest.fixture
def connect(open_llm: Any, openai: Any) -> Connect:
    """Opens a WebSocket of the official SDK to a server with this answer."""

    @asynccontextmanager
    async def opened(answer: Any = HELLO, key: str = "k", llm: FakeLLM | None = None) -> AsyncIterator[Any]:
        url = f"{(llm or await open_llm(answer)).url}/v1"
        async with openai.AsyncOpenAI(base_url=url, api_key=key) as client, client.responses.connect() as connection:
            yield connection

    return opened


async def answered(connection: Any, **asked: Any) -> list[Any]:
    """The events of one response."""
    await connection.response.create(**(ASK | asked))
    events = [await connection.recv()]
    while events[-1].type not in TERMINAL:
        events.append(await connection.recv())
    return events


async def test_a_reply_has_the_events_that_it_has_over_http(
    openai: Any, connect: Connect, open_llm: Any, recorder: Any
) -> None:
    """One frame for each event; each request is recorded as one of a WebSocket, and paid. To connect is no request."""
    llm = await open_llm(HELLO)
    async with openai.AsyncOpenAI(base_url=f"{llm.url}/v1", api_key="k") as client:
        streamed = [event.type async for event in await client.responses.create(**ASK, stream=True)]
    async with connect(llm=llm) as connection:
        for _ in range(2):
            events = await answered(connection)
            assert [event.type for event in events] == streamed
            assert events[-1].response.output_text == "Hello there, how are you?"
    http, *over = recorder.all(RequestSeen)
    assert [(seen.call, seen.websocket) for seen in (http, *over)] == [(1, False), (2, True), (3, True)]
    assert http.conversation.messages == over[0].conversation.messages and len({seen.conn.id for seen in over}) == 1
    assert len(recorder.all(WriteStarted)) == len([it for it in recorder.all(WriteEnded) if it.how == "complete"]) == 3


async def test_a_response_that_is_not_stored_is_known_until_its_connection_ends(
    connect: Connect, open_llm: Any
) -> None:
    """A tool round names the response before it; on a new connection the provider does not find it."""
    llm = await open_llm(CALL)
    result = {"type": "function_call_output", "call_id": "call_1x1", "output": "21 °C"}
    async with connect(llm=llm) as connection:
        first = (await answered(connection, store=False))[-1].response
        (call,) = first.output
        assert (call.name, call.arguments, call.call_id) == ("weather", '{"city":"Rome"}', "call_1x1")
        events = await answered(connection, store=False, input=[result], previous_response_id=first.id)
        assert events[-1].type == "response.completed"
    async with connect(llm=llm) as connection:
        (error,) = await answered(connection, store=False, input=[result], previous_response_id=first.id)
        assert (error.status, error.error.code) == (400, "previous_response_not_found")
        assert (await answered(connection))[-1].type == "response.completed", "the connection stays open"


async def test_a_request_that_only_warms_up_costs_nothing(connect: Connect, recorder: Any) -> None:
    """Its empty response can be named by the next request."""
    async with connect() as connection:
        warm = (await answered(connection, generate=False, store=False))[-1].response
        assert warm.output == [] and recorder.all(WriteStarted) == []
        events = await answered(connection, store=False, previous_response_id=warm.id)
        assert events[-1].response.output_text and len(recorder.all(WriteStarted)) == 1


async def test_a_refusal_is_an_error_event_with_its_status(connect: Connect, recorder: Any) -> None:
    """A rate limit says when to come again; a wrong request is refused as over HTTP."""
    async with connect(Failure(429, retry_after=7)) as connection:
        (error,) = await answered(connection)
        assert (error.status, error.headers["retry-after"]) == (429, "7")
        lost = {"type": "function_call_output", "call_id": "call_9", "output": "x"}
        (error,) = await answered(connection, input=[lost])
        assert error.status == 400 and "No tool call found" in error.error.message
        await connection.send({"type": "response.steer", "previous_response_id": "r", "input": []})
        assert (await connection.recv()).status == 400
        await connection.send({"type": "response.create", "stream_id": "lane", **ASK})
        error = await connection.recv()
        assert error.status == 400 and "stream_id" in error.error.message
    assert [fact.status for fact in recorder.all(RefusalSent)] == [429, 400, 400, 400]


@pytest.mark.parametrize(("edit", "code"), [(ClosedSocket(3, 1011, "busy"), 1011), (EarlyEnd(3), 1000)])
async def test_a_connection_is_closed_in_the_middle_of_a_reply(connect: Connect, edit: Any, code: int) -> None:
    """By a close frame after the event; the client sees its code."""
    async with connect(Reply(HELLO.items, edits=(edit,))) as connection:
        await connection.response.create(**ASK)
        types = [(await connection.recv()).type for _ in range(3)]
        assert types[0] == "response.created"
        with pytest.raises(websockets.ConnectionClosed) as closed:
            await connection.recv()
    assert closed.value.rcvd.code == code


async def test_over_http_nothing_is_closed_by_a_close_frame(openai: Any, open_llm: Any) -> None:
    """The fault does not fire there."""
    llm = await open_llm(Reply(HELLO.items, edits=(ClosedSocket(3),)))
    async with openai.AsyncOpenAI(base_url=f"{llm.url}/v1", api_key="k") as client:
        events = [event.type async for event in await client.responses.create(**ASK, stream=True)]
    assert events[-1] == "response.completed"


async def test_a_frame_can_be_cut_and_stalled_inside(connect: Connect, open_llm: Any, recorder: Any) -> None:
    """At a stop exactly its bytes have been written: the client waits for the rest of a frame, then it is lost."""
    at: list[int] = []

    def inside(point: Any) -> list[int]:
        at[:] = at or [point.frame_ends[3] + 5]
        recorder.hold(at[0])
        return at if point.at == -1 else []

    recorder.plan = inside
    llm = await open_llm(HELLO)
    async with connect(llm=llm) as connection:
        await connection.response.create(**ASK)
        for _ in range(4):
            await connection.recv()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await connection.recv()
        for line in list(llm.connections):
            line.transport.abort()
        with pytest.raises(websockets.ConnectionClosedError):
            await connection.recv()
    (ended,) = recorder.all(WriteEnded)
    assert (ended.how, ended.body_bytes) == ("hung_up", at[0])


async def test_a_ping_is_answered_between_frames_and_pings_keep_a_reply_alive(connect: Connect, clock: Any) -> None:
    """While a paced reply is written the pong waits for the end of a frame."""
    clock.held = True
    async with connect(Reply((Text("one two three", pace_ms=50),), edits=(PingsOnly(8),))) as connection:
        pong = await connection._connection.ping()
        await pong
        await connection.response.create(**ASK)
        first = await connection.recv()
        pong = await connection._connection.ping()
        for _ in range(12):
            clock.ring()
        async with asyncio.timeout(5):
            await pong
        assert first.type == "response.created"


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/responses", {}, 401),
        ("/v1/chat/completions", {"Authorization": "Bearer k"}, 404),
        ("/v1/responses", {"Authorization": "Bearer k", "Sec-WebSocket-Version": "8"}, 400),
    ],
)
async def test_a_client_gets_no_websocket(open_llm: Any, path: str, headers: dict[str, str], status: int) -> None:
    """Without a key, at another path, or of another version."""
    llm = await open_llm(HELLO)
    asking = {"Host": "x", "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"} | headers
    lines = [
        f"{name}: {given}\r\n" for name, given in (asking | {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}).items()
    ]
    reader, writer = await asyncio.open_connection(llm.host, llm.port)
    writer.write(f"GET {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode())
    assert int((await reader.readline()).split()[1]) == status
    writer.close()


# ---- the client's frames


def masked(kind: int, data: bytes, *, final: bool = True) -> bytes:
    mask = b"\x01\x02\x03\x04"
    body = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
    size = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | 126]) + len(data).to_bytes(2, "big")
    return bytes([kind | (0x80 if final else 0)]) + size + mask + body


@pytest.fixture
def reader() -> tuple[FrameReader, list[tuple[bytes, bool]]]:
    told: list[tuple[bytes, bool]] = []
    head = Head("GET", "/v1/responses", False, {"authorization": "Bearer k"})
    return FrameReader(head, lambda data, closes: told.append((data, closes))), told


@pytest.mark.parametrize("step", [1, 3, 1000])
def test_a_message_may_come_in_pieces_with_a_ping_between_them(reader: Any, step: int) -> None:
    """However its bytes arrive; a long one has a longer length."""
    frames, told = reader
    long = b"x" * 300
    data = masked(1, b'{"a"', final=False) + masked(9, b"hi") + masked(0, b": 1}") + masked(1, long)
    found = [it for at in range(0, len(data), step) for it in frames.feed(data[at : at + step])]
    assert [it.body for it in found] == [b'{"a": 1}', long]
    assert found[0].head.method == "POST" and told == [(b"\x8a\x02hi", False)]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (text(b"{}"), 1002),
        (masked(0, b"x"), 1002),
        (masked(3, b"x"), 1002),
        (b"\x81\xff" + (2**40).to_bytes(8, "big"), 1009),
        (masked(8, b"\x03\xe8bye"), 1000),
    ],
)
def test_a_frame_that_ends_the_connection_is_answered_with_a_close(reader: Any, data: bytes, code: int) -> None:
    """A frame without a mask, a continuation of nothing, an unknown kind, one that is too big, a close."""
    frames, told = reader
    assert frames.feed(data) == [] and frames.feed(masked(1, b"{}")) == []
    ((answer, closes),) = told
    assert closes and answer[0] == 0x88 and int.from_bytes(answer[2:4], "big") == code
