"""Whatever a client sends gets an answer in HTTP, in the provider's shape, and leaves nothing behind.

300 requests per dialect; `WEDGEHOG_FUZZ=100000` asks for more (`nox -s fuzz`).
"""

from __future__ import annotations

import asyncio
import json
import os
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.fuzz.requests import DIALECTS, wire_bytes
from wedgehog.fake_llm.connection import Connection
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import Fact, Point, Refused, ReplyEnded, ReplyStarted, RequestSeen, Unscripted
from wedgehog.fake_llm.reply import Answer, Reply, Text, Thinking, ToolCall
from wedgehog.fake_llm.server import FakeLLM

REQUESTS = int(os.environ.get("WEDGEHOG_FUZZ", "300"))
RICH = Reply(
    (
        Thinking("Hm."),
        Text("Grüße 👩‍🚀 there."),
        ToolCall("shell", {"command": "ls"}, id="1x1"),
        ToolCall("shell", raw_args='{"comm'),
        ToolCall("read_file"),
    )
)


class Says:
    def answer(self, call: int, conversation: Conversation) -> Answer:
        return RICH


class Notes:
    """Remembers facts."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def saw(self, fact: Fact) -> None:
        self.facts.append(fact)

    async def gate(self, point: Point) -> tuple[int, ...]:
        return ()


class Pipe(asyncio.Transport):
    """The server's end of a connection, without a socket."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.sent = b""
        self._connection = connection
        self._closing = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else default

    def write(self, data: Any) -> None:
        assert not self._closing, "nothing is written to a connection that was closed"
        self.sent += data

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    abort = close


async def exchange(llm: FakeLLM, sent: bytes, cuts: list[int]) -> bytes:
    """Everything that the server answers to these bytes, which come in pieces; then the client hangs up."""
    connection = llm.connection()
    pipe = Pipe(connection)
    connection.connection_made(pipe)
    edges = [0, *sorted(cut % (len(sent) + 1) for cut in cuts), len(sent)]
    for start, end in pairwise(edges):
        if not pipe.is_closing():
            connection.data_received(sent[start:end])
    async with asyncio.timeout(10):
        while connection.is_busy:
            await asyncio.sleep(0)
    pipe.close()
    await asyncio.sleep(0)
    assert not connection.is_there
    return pipe.sent


def replies(raw: bytes) -> list[tuple[int, str, bytes]]:
    """Status, content type and body of each reply; the bytes must be exactly theirs."""
    found = []
    while raw:
        head, _, rest = raw.partition(b"\r\n\r\n")
        start, *lines = head.decode("latin-1").split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        if "content-length" in fields:
            size = int(fields["content-length"])
            body, raw = rest[:size], rest[size:]
            assert len(body) == size
        elif "transfer-encoding" in fields:
            body, raw = unchunked(rest)
        else:
            body, raw = rest, b""
        found.append((int(start.split()[1]), fields["content-type"], body))
    return found


def unchunked(raw: bytes) -> tuple[bytes, bytes]:
    body = b""
    while True:
        size, _, raw = raw.partition(b"\r\n")
        count = int(size, 16)
        body += raw[:count]
        assert raw[count : count + 2] == b"\r\n"
        raw = raw[count + 2 :]
        if count == 0:
            return body, raw


def check_body(content_type: str, body: bytes) -> None:
    """Every event, line or whole body is JSON in UTF-8."""
    text = body.decode()
    if content_type.startswith("text/event-stream"):
        for block in filter(None, text.replace("\r\n", "\n").split("\n\n")):
            data = [line.removeprefix("data: ") for line in block.split("\n") if line.startswith("data: ")]
            assert data == ["[DONE]"] or [json.loads(one) for one in data]
    elif content_type.startswith("application/x-ndjson"):
        assert all(isinstance(json.loads(line), dict) for line in text.splitlines())
    else:
        json.loads(text)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])
def test_every_request_is_answered_in_the_providers_shape(dialect: str, strict: bool) -> None:
    """No 5xx, no exception, no task left; each request seen is either refused or replied to, once."""
    loop = asyncio.new_event_loop()
    complaints: list[Any] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))

    @settings(max_examples=max(REQUESTS // 2, 1), deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(sent=wire_bytes(dialect), cuts=st.lists(st.integers(0, 2**16), max_size=2))
    def fuzz(sent: bytes, cuts: list[int]) -> None:
        notes = Notes()
        complaints.clear()
        llm = FakeLLM(Says(), notes, strict=strict, models=["m", "gemini-3-pro"])
        raw = loop.run_until_complete(exchange(llm, sent, cuts))
        said = replies(raw)
        for status, content_type, body in said:
            event(f"status {status}")
            assert status < 500
            if body:
                check_body(content_type, body)
        told = {kind: [f for f in notes.facts if isinstance(f, kind)] for kind in (RequestSeen, ReplyEnded)}
        assert len(told[RequestSeen]) == len(said) == len(told[ReplyEnded])
        assert not [fact for fact in notes.facts if isinstance(fact, Unscripted)]
        started = [fact.call for fact in notes.facts if isinstance(fact, ReplyStarted)]
        refused = [fact.call for fact in notes.facts if isinstance(fact, Refused) and fact.enforced]
        assert not set(started) & set(refused)
        assert len(refused) == sum(1 for status, _, _ in said if status >= 400)
        assert complaints == []
        assert asyncio.all_tasks(loop) == set()

    try:
        fuzz()
    finally:
        loop.close()
