"""A reply without a gate is written while its request is read; only a reply that takes time has a task."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from wedgehog.fake_llm.connection import Connection
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.dialects.anthropic.wire import ANTHROPIC
from wedgehog.fake_llm.dialects.base import Exchange
from wedgehog.fake_llm.dialects.gemini.wire import GEMINI
from wedgehog.fake_llm.dialects.ollama.wire import OLLAMA
from wedgehog.fake_llm.dialects.openai_chat.wire import OPENAI_CHAT
from wedgehog.fake_llm.dialects.openai_responses.wire import OPENAI_RESPONSES
from wedgehog.fake_llm.http_request import Incoming
from wedgehog.fake_llm.observer import Conn, Fact, WriteEnded
from wedgehog.fake_llm.reply import Answer, Reply, Text, ToolCall
from wedgehog.fake_llm.request import Request
from wedgehog.fake_llm.server import FakeLLM
from wedgehog.fake_llm.usage import billed

BODY = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "Hello!"}]}'
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer k\r\nContent-Length: %d\r\n\r\n" % len(BODY)
ASKED = HEAD + BODY
LAST_CHUNK = b"\r\n0\r\n\r\n"


class Hears:
    """An observer without a gate."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def saw(self, fact: Fact) -> None:
        self.facts.append(fact)


class Says:
    def __init__(self, reply: Reply) -> None:
        self._reply = reply

    def answer(self, call: int, conversation: Conversation) -> Answer:
        return self._reply


class Tape(asyncio.Transport):
    """Records each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        pass


def connected(llm: FakeLLM) -> tuple[Connection, Tape]:
    connection, tape = llm.connection(), Tape()
    connection.connection_made(tape)
    return connection, tape


async def test_a_reply_that_is_not_held_is_written_at_once() -> None:
    """Before `data_received` returns, whole, in one write and without a task; two requests in a row as well."""
    notes = Hears()
    connection, tape = connected(FakeLLM(Says(Reply((Text("abcd" * 50),))), notes))
    connection.data_received(ASKED)
    assert (len(tape.writes), connection.is_busy) == (1, False)
    assert tape.writes[0].count(b"data: ") == 53
    connection.data_received(ASKED * 2)
    assert [data.endswith(LAST_CHUNK) for data in tape.writes] == [True] * 3
    assert [fact.how for fact in notes.facts if isinstance(fact, WriteEnded)] == ["complete"] * 3


async def test_a_gate_is_asked_by_a_task(recorder: Any) -> None:
    """So that the gate may wait."""
    connection, tape = connected(FakeLLM(Says(Reply((Text("Hi"),))), recorder))
    opened = recorder.hold(-1)
    connection.data_received(ASKED)
    assert connection.is_busy
    await recorder.until(lambda: bool(recorder.points))
    assert tape.writes == []
    opened.set()
    await recorder.wait_for(WriteEnded)
    assert tape.writes[0].endswith(LAST_CHUNK)


@pytest.mark.parametrize(
    "reply", [Reply((Text("Hi"),), delay_s=3), Reply((Text("Hi you"), Text("there", pace_ms=3000)))]
)
async def test_a_reply_that_takes_its_time_is_left_to_a_task(clock: Any, reply: Reply) -> None:
    """Other connections do not wait for it."""
    clock.held = True
    connection, tape = connected(FakeLLM(Says(reply), Hears(), clock=clock))
    connection.data_received(ASKED)
    assert connection.is_busy
    while not clock.slept:
        await asyncio.sleep(0)
    assert not b"".join(tape.writes).endswith(LAST_CHUNK)
    for _ in range(5):
        clock.ring()
    while connection.is_busy:
        await asyncio.sleep(0)
    assert b"".join(tape.writes).endswith(LAST_CHUNK)


async def test_nothing_may_take_time_before_there_is_a_task() -> None:
    """An await without a task is reported as an error."""

    async def answer(connection: Connection, incoming: Incoming) -> None:
        await asyncio.sleep(0.001)

    connection = Connection(lambda _: Conn(1, ("", 0)), answer, lambda _: None)
    connection.connection_made(Tape())
    with pytest.raises(AssertionError, match="can_wait"):
        connection.data_received(ASKED)


@pytest.mark.parametrize(
    ("dialect", "pieces"), [(ANTHROPIC, 8), (OPENAI_CHAT, 7), (OPENAI_RESPONSES, 7), (GEMINI, 1), (OLLAMA, 1)]
)
def test_the_arguments_of_a_call_are_paced_as_text_is(dialect: Any, pieces: int) -> None:
    """Each streamed piece waits; a provider that streams a call in one piece waits once."""
    call = ToolCall("bash", {"command": "ls -la /tmp"}, pace_ms=200)
    path = "/api/chat" if dialect is OLLAMA else "/"
    request = Request(1, "POST", path, {})
    talk = Conversation(dialect.WIRE, "m", True, ())
    frames = list(dialect.stream(Reply((call,)), Exchange(request, talk, billed(Reply((call,)), talk), 0)))
    assert [frame.delay_s for frame in frames if frame.delay_s] == [0.2] * pieces
