"""A small database behind the link `store:db`: it counts queries, and each one takes a set time.

```
agent ─▶ {"sql": "INSERT INTO units VALUES (?)", "args": ["a"]}       one JSON object per line; one reply per query
agent ◀─ {"rows": [], "changed": 1}                                  or {"error": "no such table: units"}
```

Each run has one SQLite database in memory, shared by all connections, so the data outlives the agent's processes.
"""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from wedgehog.harness.network.base import Address
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.services.json_lines import LineServer, line_of

QueryListener = Callable[[int, str, int, float], None]
"""Arguments: number in the run, verb, rows, seconds that the query took."""
QueryGate = Callable[[Address, int], Awaitable[None]]
"""`await gate(connection, bytes written on it)` before each reply."""


class Database(LineServer):
    """Listens on a free loopback port. An async context manager."""

    def __init__(self, latency_s: float, clock: Clock, asked: QueryListener, gate: QueryGate) -> None:
        """Each query takes `latency_s` (real seconds) and is reported to `asked`; its reply waits for `gate`."""
        self._latency_s, self._clock, self._asked, self._gate = latency_s, clock, asked, gate
        self._sql = sqlite3.connect(":memory:", isolation_level=None)
        self._count = 0
        super().__init__()

    async def __aexit__(self, *exc_info: object) -> None:
        await super().__aexit__(*exc_info)
        self._sql.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conn, written = writer.get_extra_info("peername")[:2], 0
        while line := await reader.readline():
            reply = line_of(await self._answered(line))
            await self._gate(conn, written)
            writer.write(reply)
            written += len(reply)
            await writer.drain()

    async def _answered(self, line: bytes) -> Mapping[str, Any]:
        begun_s = self._clock.now()
        self._count += 1
        number = self._count
        await self._clock.sleep(self._latency_s)
        sql, seen = "", 0
        reply: dict[str, Any]
        try:
            asked = json.loads(line)
            sql = str(asked["sql"])
            cursor = self._sql.execute(sql, asked.get("args") or [])
            rows = [list(row) for row in cursor.fetchall()]
            reply = {"rows": rows, "changed": max(0, cursor.rowcount)}
            seen = len(rows) or reply["changed"]
        except (sqlite3.Error, sqlite3.Warning, OverflowError) as wrong:
            reply = {"error": str(wrong)}
        except (ValueError, KeyError, TypeError, AttributeError):
            reply = {"error": 'expected a line like {"sql": "SELECT 1", "args": []}'}
        verb = (sql.split(maxsplit=1) or ["?"])[0].upper()[:20]
        self._asked(number, verb, seen, self._clock.now() - begun_s)
        return reply
