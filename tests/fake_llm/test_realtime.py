"""The Realtime API over a WebSocket, as the official SDK speaks it: text and tool calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.fake_llm.conftest import Says
from tests.fake_llm.realtime_client import adds, answered, heard, says
from wedgehog.fake_llm.edit_kinds import ClosedSocket, EarlyEnd, ErrorEvent
from wedgehog.fake_llm.observer import RefusalSent, RequestSeen, WriteEnded, WriteStarted
from wedgehog.fake_llm.reply import Failure, Reply, Text, Thinking, ToolCall
from wedgehog.fake_llm.server import FakeLLM

websockets = pytest.importorskip("websockets", reason="the OpenAI package needs websockets for this")

HELLO = Reply((Text("Hello there, how are you?"),))
CALL = Reply((Thinking("hm"), ToolCall("weather", {"city": "Rome"}, "1x1")))
TEXT_ONLY = {"type": "realtime", "output_modalities": ["text"]}
WEATHER = {"type": "function", "name": "weather", "description": "d", "parameters": {"type": "object"}}
Connect = Callable[..., Any]


@pytest.fixture
def openai() -> Any:
    """The SDK. Not imported when tests are collected: that takes half a second, and each worker collects all tests."""
    return pytest.importorskip("openai", reason="the OpenAI package is not installed")


@pytest.fixture
def connect(open_llm: Any, openai: Any) -> Connect:
    """Opens a session of the official SDK, which has read its first event."""

    @asynccontextmanager
    async def opened(
        answer: Any = HELLO, llm: FakeLLM | None = None, beta: bool = False, session: Any = TEXT_ONLY
    ) -> AsyncIterator[Any]:
        url = f"{(llm or await open_llm(answer)).url}/v1"
        socket = url.replace("http", "ws", 1)
        async with openai.AsyncOpenAI(base_url=url, websocket_base_url=socket, api_key="k") as client:
            api = client.beta.realtime if beta else client.realtime
            async with api.connect(model="gpt-realtime") as connection:
                assert (await heard(connection)).type == "session.created"
                if session:
                    await connection.session.update(session=session)
                    assert (await heard(connection)).type == "session.updated"
                yield connection

    return opened


async def test_a_text_comes_in_deltas_and_ends_with_its_usage(connect: Connect, recorder: Any) -> None:
    """Each event is one that the SDK's types know; the request has the words that the session holds."""
    async with connect(session={**TEXT_ONLY, "instructions": "Be brief."}) as connection:
        await says(connection)
        events = await answered(connection)
        await says(connection, "And you?")
        again = await answered(connection)
    types = [event.type for event in events]
    deltas = types.count("response.output_text.delta")
    assert types == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        *["response.output_text.delta"] * deltas,
        "response.output_text.done",
        "response.content_part.done",
        "conversation.item.done",
        "response.output_item.done",
        "response.done",
    ]
    assert "".join(it.delta for it in events if it.type.endswith("delta")) == "Hello there, how are you?" and deltas > 2
    done, later = events[-1].response, again[-1].response
    assert (done.status, done.output[0].content[0].text) == ("completed", "Hello there, how are you?")
    assert done.usage.total_tokens == done.usage.input_tokens + done.usage.output_tokens
    first, second = recorder.all(RequestSeen)
    assert (first.wire, first.websocket, first.conversation.model) == ("openai-realtime", True, "gpt-realtime")
    assert [(it.role, it.text) for it in second.conversation.messages] == [
        ("system", "Be brief."),
        ("user", "Hello"),
        ("assistant", "Hello there, how are you?"),
        ("user", "And you?"),
    ]
    billed = [fact.input_tokens for fact in recorder.all(WriteStarted)]
    assert billed == [done.usage.input_tokens, later.usage.input_tokens] and later.id != done.id


async def test_a_tool_call_is_answered_by_an_item(connect: Connect, recorder: Any) -> None:
    """The arguments come in deltas; the result of an unknown call is refused, and the session goes on."""
    async with connect(CALL, session={**TEXT_ONLY, "tools": [WEATHER]}) as connection:
        await says(connection)
        events = await answered(connection)
        names = {event.type for event in events}
        assert {"response.function_call_arguments.delta", "response.function_call_arguments.done"} <= names
        assert "".join(it.delta for it in events if it.type.endswith("arguments.delta")) == '{"city":"Rome"}'
        (call,) = events[-1].response.output
        assert (call.type, call.name, call.arguments, call.call_id) == (
            "function_call",
            "weather",
            '{"city":"Rome"}',
            "call_1x1",
        )
        lost = {"type": "function_call_output", "call_id": "call_9", "output": "x"}
        await connection.conversation.item.create(item=lost, event_id="mine")
        error = (await heard(connection)).error
        assert (error.code, error.event_id) == ("invalid_tool_call_id", "mine") and "call_9" in error.message
        await adds(connection, {"type": "function_call_output", "call_id": call.call_id, "output": "21 °C"})
        assert (await answered(connection))[-1].response.status == "completed"
    *_, last = recorder.all(RequestSeen)
    assert [tool.name for tool in last.conversation.tools] == ["weather"]
    assert [it.text for it in last.conversation.messages[-1].tool_results] == ["21 °C"]
    (refused,) = recorder.all(RefusalSent)
    assert refused.pairing and refused.enforced


async def test_the_beta_has_its_own_names(connect: Connect) -> None:
    """A client that asks for the beta in a header gets the beta's events and fields."""
    async with connect(beta=True, session={"modalities": ["text"]}) as connection:
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
        await connection.conversation.item.create(item=item)
        assert (await heard(connection)).type == "conversation.item.created"
        events = await answered(connection)
    assert {"response.text.delta", "response.text.done", "conversation.item.created"} <= {it.type for it in events}
    others = ("response.output_text.delta", "conversation.item.added", "conversation.item.done")
    assert not {it.type for it in events}.intersection(others)
    assert events[-1].response.output[0].content[0].text == "Hello there, how are you?"


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"type": "input_audio_buffer.append", "audio": "AAAA"}, "neither hears nor speaks"),
        ({"type": "session.update", "session": {"type": "realtime", "modalities": ["text"]}}, "session.modalities"),
        ({"type": "session.update", "session": {"tools": []}}, "session.type"),
        ({"type": "response.cancel"}, "no active response"),
        ({"type": "response.steer"}, "Supported values are: 'session.update'"),
        ({"type": "conversation.item.create", "item": {"type": "message", "role": "user"}}, "item.content"),
        ({"type": "conversation.item.delete", "item_id": "item_9"}, "item_9"),
        ({"type": "response.create", "response": {"output_modalities": ["audio"]}}, "output_modalities"),
        ({"type": "response.create", "response": {"input": [{"type": "text"}]}}, "Supported values are: 'message'"),
    ],
)
async def test_a_message_is_refused_in_an_error_event(
    connect: Connect, recorder: Any, message: Any, words: str
) -> None:
    """Audio, names of the other version, an unknown type, a missing field; the session stays open."""
    async with connect() as connection:
        await connection.send(message)
        error = (await heard(connection)).error
        assert error.type == "invalid_request_error" and words in error.message
        await says(connection)
        assert (await answered(connection))[-1].response.status == "completed"
    assert [fact.status for fact in recorder.all(RefusalSent)] == [400]


async def test_a_message_that_is_no_json_is_refused(connect: Connect) -> None:
    async with connect() as connection:
        await connection._connection.send("{")
        assert "could not parse" in (await heard(connection)).error.message


async def test_items_are_deleted_read_and_put_at_a_place(connect: Connect, recorder: Any) -> None:
    """The conversation is the server's: the client changes it by events."""
    async with connect() as connection:
        await says(connection, "two")
        first = {
            "type": "message",
            "role": "system",
            "content": [{"type": "input_text", "text": "one"}],
            "id": "item_1",
        }
        await connection.conversation.item.create(item=first, previous_item_id="root")
        assert [(await heard(connection)).item.id for _ in range(2)] == ["item_1", "item_1"]
        await connection.conversation.item.retrieve(item_id="item_1")
        assert (await heard(connection)).item.content[0].text == "one"
        audio = {"type": "input_audio", "audio": "AAAA", "transcript": "three"}
        await adds(connection, {"type": "message", "role": "user", "content": [audio]})
        await answered(connection)
        await connection.conversation.item.delete(item_id="item_1")
        assert (await heard(connection)).item_id == "item_1"
        await answered(connection, response={"conversation": "none", "instructions": "aside"})
        await answered(connection)
    told = [[it.text for it in seen.conversation.messages] for seen in recorder.all(RequestSeen)]
    hello = "Hello there, how are you?"
    assert told == [["one", "two", "three"], ["aside", "two", "three", hello], ["two", "three", hello]]


@pytest.mark.parametrize(
    ("failure", "reset_s", "kind"),
    [
        (Failure(429, retry_after=7), [7], "requests"),
        (Failure(503, retry_after="date:3"), [3], "service_unavailable"),
        (Failure(503, retry_after="Fri, 02 Jan 2026 03:04:09 GMT"), [4], "service_unavailable"),
        (Failure(500), [], "server_error"),
        (Failure(429, kind="balance"), [], "insufficient_quota"),
    ],
)
async def test_a_failure_of_the_service_is_a_failed_response(
    connect: Connect, recorder: Any, failure: Failure, reset_s: list[float], kind: str
) -> None:
    """A limit says when it ends."""
    async with connect(failure) as connection:
        await says(connection)
        created, *limits, done = await answered(connection)
        assert created.type == "response.created"
        assert [it.rate_limits[0].reset_seconds for it in limits] == reset_s
        assert (done.response.status, done.response.status_details.error.type) == ("failed", kind)
    assert [(fact.status, fact.scripted) for fact in recorder.all(RefusalSent)] == [(failure.status, True)]


async def test_a_reply_that_fails_in_the_middle_is_not_kept(connect: Connect, recorder: Any) -> None:
    """The next request has the conversation before it."""
    async with connect(Reply(HELLO.items, edits=(ErrorEvent(6),))) as connection:
        await says(connection)
        *_, done = await answered(connection)
        assert (done.response.status, done.response.status_details.error.type) == ("failed", "server_error")
        await answered(connection)
    told = [[it.text for it in seen.conversation.messages] for seen in recorder.all(RequestSeen)]
    assert told == [["Hello"], ["Hello"]]


async def test_a_second_response_waits_for_the_first(connect: Connect, clock: Any, recorder: Any) -> None:
    """While one is being sent another one is refused."""
    clock.held = True
    async with connect(Reply((Text("one two", pace_ms=50),))) as connection:
        await says(connection)
        await connection.response.create()
        created = await heard(connection)
        await connection.response.create()
        pong = await connection._connection.ping()
        for _ in range(12):
            clock.ring()
        await pong
        events = [await heard(connection)]
        while events[-1].type != "error":
            events.append(await heard(connection))
    assert events[-1].error.code == "conversation_already_has_active_response"
    assert created.response.id in events[-1].error.message and events[-2].type == "response.done"
    assert [fact.status for fact in recorder.all(RefusalSent)] == [400]


@pytest.mark.parametrize(("edit", "code"), [(ClosedSocket(6, 1011, "busy"), 1011), (EarlyEnd(6), 1000)])
async def test_a_connection_is_closed_in_the_middle_of_a_reply(connect: Connect, edit: Any, code: int) -> None:
    """By a close frame after the event; the client sees its code."""
    async with connect(Reply(HELLO.items, edits=(edit,))) as connection:
        await says(connection)
        await connection.response.create()
        types = [(await heard(connection)).type for _ in range(6)]
        assert types[-1] == "response.output_text.delta"
        with pytest.raises(websockets.ConnectionClosed) as closed:
            await connection.recv()
    assert closed.value.rcvd.code == code


async def test_a_frame_can_be_cut_and_stalled_inside(connect: Connect, open_llm: Any, recorder: Any) -> None:
    """At a stop exactly its bytes have been written: the client waits for the rest of a frame, then it is lost."""
    at: list[int] = []

    def inside(point: Any) -> list[int]:
        at[:] = at or [point.frame_ends[5] + 9]
        recorder.hold(at[0])
        return at if point.at == -1 else []

    recorder.plan = inside
    llm = await open_llm(HELLO)
    async with connect(llm=llm) as connection:
        await says(connection)
        await connection.response.create()
        types = [(await heard(connection)).type for _ in range(6)]
        assert types[-1] == "response.output_text.delta"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await connection.recv()
        for line in list(llm.connections):
            line.transport.abort()
        with pytest.raises(websockets.ConnectionClosedError):
            await connection.recv()
    (ended,) = recorder.all(WriteEnded)
    assert (ended.how, ended.body_bytes) == ("hung_up", at[0])


async def test_a_lenient_server_keeps_a_broken_history_and_reports_it(connect: Connect, recorder: Any) -> None:
    """As on the other wires: the request is answered, and the refusal that it would have got is a fact."""
    async with FakeLLM(Says(HELLO), recorder, strict=False) as llm, connect(llm=llm) as connection:
        await says(connection)
        await adds(connection, {"type": "function_call_output", "call_id": "call_9", "output": "x"})
        assert (await answered(connection))[-1].response.status == "completed"
    (refused,) = recorder.all(RefusalSent)
    assert refused.pairing and not refused.enforced


@pytest.mark.parametrize(("key", "status"), [("", 401), ("Bearer k", 400)])
async def test_without_a_websocket_nothing_is_there(open_llm: Any, key: str, status: int) -> None:
    """A GET that is no handshake, and one without a key."""
    llm = await open_llm(HELLO)
    reader, writer = await asyncio.open_connection(llm.host, llm.port)
    line = f"Authorization: {key}\r\n" if key else ""
    writer.write(f"GET /v1/realtime?model=m HTTP/1.1\r\nHost: x\r\n{line}\r\n".encode())
    assert int((await reader.readline()).split()[1]) == status
    writer.close()
