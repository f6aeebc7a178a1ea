"""Each input gets an HTTP answer in the provider's shape, and leaves no state behind.

A few hundred requests per dialect; `WEDGEHOG_FUZZ=100000` asks for more (`nox -s fuzz`).
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from random import Random
from time import perf_counter
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.fuzz.breaking import Batch, batches
from tests.fuzz.requests import DIALECTS
from wedgehog.fake_llm.connection import Connection
from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.observer import (
    Fact,
    Point,
    RefusalSent,
    RequestSeen,
    RequestUnscripted,
    WriteEnded,
    WriteStarted,
)
from wedgehog.fake_llm.reply import Answer, Reply, Text, Thinking, ToolCall
from wedgehog.fake_llm.server import FakeLLM

REQUESTS = int(os.environ.get("WEDGEHOG_FUZZ", "600"))
BATCH = 50
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


class Hears:
    """Records facts."""

    def __init__(self) -> None:
        self.facts: list[Fact] = []

    def saw(self, fact: Fact) -> None:
        self.facts.append(fact)


class Holds(Hears):
    """Has a gate, so that a task answers."""

    async def gate(self, point: Point) -> tuple[int, ...]:
        await asyncio.sleep(0)
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


class Line:
    """A client without a socket: keeps its connection as long as it is answered there."""

    def __init__(self, llm: FakeLLM) -> None:
        self._llm = llm
        self._connect()

    def _connect(self) -> None:
        self._connection = self._llm.connection()
        self._pipe = Pipe(self._connection)
        self._connection.connection_made(self._pipe)

    async def ask(self, sent: bytes, cuts: list[int]) -> bytes:
        """Everything that the server answers to these bytes, which come in pieces."""
        if self._pipe.is_closing():
            self._connect()
        edges = [0, *sorted(cut % (len(sent) + 1) for cut in cuts), len(sent)]
        for start, end in pairwise(edges):
            if not self._pipe.is_closing():
                self._connection.data_received(sent[start:end])
        async with asyncio.timeout(10):
            while self._connection.is_busy:
                await asyncio.sleep(0)
        told, self._pipe.sent = self._pipe.sent, b""
        if not told:
            await self.hang_up()
        return told

    async def hang_up(self) -> None:
        """No state of the client is left in the server."""
        self._pipe.close()
        await asyncio.sleep(0)
        assert not self._connection.is_active


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


def check(sent: bytes, raw: bytes, facts: list[Fact]) -> Iterator[int]:
    """Each request that was seen is either refused or replied to, once, and never with 5xx; yields the statuses."""
    said = replies(raw)
    for status, content_type, body in said:
        assert status < 500
        if body:
            check_body(content_type, body)
        yield status
    told = {kind: [f for f in facts if isinstance(f, kind)] for kind in (RequestSeen, WriteEnded)}
    assert len(told[RequestSeen]) == len(said) == len(told[WriteEnded])
    assert not [fact for fact in facts if isinstance(fact, RequestUnscripted)]
    started = [fact.call for fact in facts if isinstance(fact, WriteStarted)]
    refused = [fact.call for fact in facts if isinstance(fact, RefusalSent) and fact.enforced]
    assert not set(started) & set(refused)
    assert len(refused) == sum(1 for status, _, _ in said if status >= 400)


@contextmanager
def telling(sent: bytes) -> Iterator[None]:
    """Name the request in the error."""
    try:
        yield
    except BaseException as wrong:
        wrong.add_note(f"sent: {sent!r}")
        raise


def fuzz(dialect: str, count: int, ask_all: Callable[[asyncio.AbstractEventLoop, Batch], Counter[int]]) -> None:
    """Ask batches until there were `count` requests, and print how they ended; nothing may be left of any."""
    loop = asyncio.new_event_loop()
    complaints: list[Any] = []
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    statuses: Counter[int] = Counter()
    began = perf_counter()

    # Nothing is made smaller: a failure tells the one request that it is about.
    @settings(
        max_examples=max(count // BATCH, 1),
        phases=[Phase.generate],
        deadline=None,
        database=None,
        suppress_health_check=[*HealthCheck],
    )
    @given(batch=batches(dialect))
    def batch_after_batch(batch: Batch) -> None:
        statuses.update(ask_all(loop, batch))
        assert complaints == []
        assert asyncio.all_tasks(loop) == set()

    try:
        batch_after_batch()
    finally:
        loop.close()
    took, total = perf_counter() - began, sum(statuses.values())
    print(
        f"{dialect}: {total:,} answers in {took:.0f} s:",
        *(f"{n:,} of {status}" for status, n in sorted(statuses.items())),
    )
    if total > 40 * BATCH:
        assert total / 10 < statuses[200] < total * 9 / 10, "some are in order, and some are not"


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_request_is_answered_in_the_providers_shape(dialect: str, strict: bool) -> None:
    """No 5xx, no exception, no task left; on connections that are kept, with and without a gate."""

    async def ask_all(batch: Batch) -> Counter[int]:
        statuses: Counter[int] = Counter()
        random = Random(batch.seed)
        notes = random.choice([Hears, Holds])()
        line = Line(FakeLLM(Says(), notes, strict=strict, models=["m", "gemini-3-pro"]))
        for sent in batch.requests(BATCH):
            with telling(sent):
                notes.facts.clear()
                raw = await line.ask(sent, [random.randrange(2**16) for _ in range(random.randrange(3))])
                statuses.update(check(sent, raw, notes.facts))
        await line.hang_up()
        return statuses

    fuzz(dialect, REQUESTS // 2, lambda loop, batch: loop.run_until_complete(ask_all(batch)))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_socket_is_left(dialect: str) -> None:
    """The same requests over TCP, each on a connection of its own that its client may leave before it is answered."""

    async def ask_all(batch: Batch) -> Counter[int]:
        statuses: Counter[int] = Counter()
        random = Random(batch.seed)
        notes = Hears()
        async with FakeLLM(Says(), notes, models=["m", "gemini-3-pro"]) as llm, asyncio.timeout(60):
            for sent in batch.requests(BATCH):
                with telling(sent):
                    notes.facts.clear()
                    reader, writer = await asyncio.open_connection(llm.host, llm.port)
                    writer.write(sent)
                    if random.random() < 0.1:
                        writer.transport.abort()
                        continue
                    writer.write_eof()
                    me = writer.get_extra_info("sockname")
                    raw = await reader.read()
                    writer.close()
                    await writer.wait_closed()
                    calls = {
                        fact.call for fact in notes.facts if isinstance(fact, RequestSeen) and fact.conn.peer == me
                    }
                    mine = [fact for fact in notes.facts if getattr(fact, "call", 0) in calls]
                    statuses.update(check(sent, raw, mine))
        return statuses

    def without_a_trace(loop: asyncio.AbstractEventLoop, batch: Batch) -> Counter[int]:
        before = psutil.Process().num_fds()
        try:
            return loop.run_until_complete(ask_all(batch))
        finally:
            assert psutil.Process().num_fds() == before

    fuzz(dialect, REQUESTS // 20, without_a_trace)
