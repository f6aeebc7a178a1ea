"""Our database: it answers in JSON lines, counts, takes its time, and outlives its clients."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.services.database import Database


class Client:
    """A connection to it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, sql: str, *args: Any) -> Any:
        return await self.say(json.dumps({"sql": sql, "args": args}))

    async def say(self, line: str) -> Any:
        self.writer.write(line.encode() + b"\n")
        return json.loads(await asyncio.wait_for(self.reader.readline(), 5))


@pytest.fixture
async def opened() -> AsyncIterator[Any]:
    """Opens a database; `asked` has the reported queries, `gated` the calls of its gate."""
    clients: list[Client] = []

    class Opened:
        def __init__(self) -> None:
            self.asked: list[tuple[int, str, int]] = []
            self.gated: list[int] = []
            self.may = asyncio.Event()
            self.may.set()

        async def gate(self, conn: Any, written: int) -> None:
            self.gated.append(written)
            await self.may.wait()

        async def connect(self) -> Client:
            clients.append(Client(*await asyncio.open_connection(*self.database.address)))
            return clients[-1]

    it = Opened()
    it.latencies = []  # type: ignore[attr-defined]

    def asked(number: int, verb: str, rows: int, took_s: float) -> None:
        it.asked.append((number, verb, rows))
        it.latencies.append(took_s)  # type: ignore[attr-defined]

    async with Database(0.01, WallClock(), asked, it.gate) as database:
        it.database = database  # type: ignore[attr-defined]
        yield it
    for client in clients:
        client.writer.close()


async def test_it_remembers_for_all_connections_and_counts(opened: Any):
    """What one agent's process wrote, its next one reads."""
    first = await opened.connect()
    assert await first.ask("CREATE TABLE units (name TEXT, size INTEGER)") == {"rows": [], "changed": 0}
    assert await first.ask("insert into units values (?, ?), ('b', 2)", "a", 1) == {"rows": [], "changed": 2}
    first.writer.close()
    second = await opened.connect()
    assert await second.ask("SELECT * FROM units ORDER BY size") == {"rows": [["a", 1], ["b", 2]], "changed": 0}
    assert opened.asked == [(1, "CREATE", 0), (2, "INSERT", 2), (3, "SELECT", 2)]
    assert min(opened.latencies) >= 0.01


async def test_what_is_wrong_is_answered_and_the_connection_stays(opened: Any):
    """A query that SQLite refuses, and a line that is none."""
    client = await opened.connect()
    assert await client.ask("SELECT * FROM nowhere") == {"error": "no such table: nowhere"}
    for line in ("hello", "[]", '{"args": []}', "null"):
        assert await client.say(line) == {"error": 'expected a line like {"sql": "SELECT 1", "args": []}'}
    assert await client.ask("SELECT 1") == {"rows": [[1]], "changed": 0}
    assert len(opened.asked) == 6


async def test_a_reply_waits_at_the_gate_which_knows_what_went_before(opened: Any):
    """So that a fault can be armed at its first byte."""
    client = await opened.connect()
    first = json.dumps(await client.ask("SELECT 1"))
    opened.may.clear()
    waiting = asyncio.create_task(client.ask("SELECT 2"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(waiting), 0.2)
    assert opened.gated == [0, len(first) + 1]
    opened.may.set()
    assert (await waiting)["rows"] == [[2]]
