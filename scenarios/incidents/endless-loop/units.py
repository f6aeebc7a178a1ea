"""The tool `update_units`, and the remote database that it queries four or five times a unit."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

QUERY_S = 0.05  # one round trip to the report's database
MOST_UNITS = 1000
TABLES = (
    "CREATE TABLE IF NOT EXISTS units (unit_id INTEGER PRIMARY KEY, unit_number TEXT)",
    "CREATE TABLE IF NOT EXISTS leases (lease_id INTEGER PRIMARY KEY, unit_id INTEGER, state TEXT)",
    "CREATE TABLE IF NOT EXISTS unit_types (name TEXT, unit_id INTEGER)",
)
TOOL = {
    "name": "update_units",
    "description": "Create or update units of the project with their leases and unit types.",
    "input_schema": {
        "type": "object",
        "properties": {"count": {"type": "integer", "minimum": 1, "maximum": MOST_UNITS}},
        "required": ["count"],
    },
}


class Near:
    """A file; each query also waits for the time of a round trip. It returns the first column of its rows."""

    def __init__(self, file: Path, query_s: float) -> None:
        self._database = sqlite3.connect(file, isolation_level=None)
        for statement in ("PRAGMA synchronous = OFF", *TABLES):
            self._database.execute(statement)
        self._query_s = query_s
        self.queries = 0

    async def query(self, statement: str, *values: Any) -> list[Any]:
        await asyncio.sleep(self._query_s)
        self.queries += 1
        return [row[0] for row in self._database.execute(statement, values)]


class Far:
    """A server on the network: one line of JSON for each query, and one for its rows."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.queries = 0

    async def query(self, statement: str, *values: Any) -> list[Any]:
        self._writer.write(json.dumps({"sql": statement, "args": values}).encode() + b"\n")
        await self._writer.drain()
        reply = json.loads(await self._reader.readline() or b'{"error": "the database closed the connection"}')
        if "error" in reply:
            raise ValueError(reply["error"])
        self.queries += 1
        return [row[0] for row in reply["rows"]]


Database = Near | Far


class Units:
    """The tool. Each call has a connection of its own."""

    def __init__(self, folder: Path, time_scale: float, many_rows: bool, store: str = "") -> None:
        """`store` is the address of a database on the network; empty: a file in the folder, with the same latency."""
        self._file = folder / "units.sqlite"
        self._log = folder / "work.jsonl"
        self._query_s = QUERY_S / time_scale
        self._many_rows = many_rows
        self._store = urlsplit(store)

    async def update(self, count: int) -> dict[str, Any]:
        numbers = [str(100 + n) for n in range(1, min(count, MOST_UNITS) + 1)]
        async with self._connected() as database:
            ids = await (_in_one_go(database, numbers) if self._many_rows else _one_by_one(database, numbers))
            self._note(len(numbers), database.queries)
        results = [{"unit_id": id_, "unit_number": number} for id_, number in zip(ids, numbers, strict=True)]
        return {"success": True, "mutation": "update_units", "count": len(results), "results": results}

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Database]:
        """The tables exist; the queries that create them are not counted."""
        if not self._store.hostname:
            yield Near(self._file, self._query_s)
            return
        reader, writer = await asyncio.open_connection(self._store.hostname, self._store.port)
        try:
            far = Far(reader, writer)
            for table in TABLES:
                await far.query(table)
            far.queries = 0
            yield far
        finally:
            writer.close()

    def _note(self, units: int, queries: int) -> None:
        """Seconds as in the report: only latency, unscaled."""
        line = {"tool": "update_units", "units": units, "queries": queries, "latency_s": round(queries * QUERY_S, 2)}
        with self._log.open("a") as file:
            file.write(json.dumps(line) + "\n")


async def _one_by_one(database: Database, numbers: list[str]) -> list[int]:
    """Four queries a unit, and a fifth for every second unit: 180 round trips for 40 units."""
    ids = []
    for n, number in enumerate(numbers):
        (unit,) = await database.query("INSERT INTO units (unit_number) VALUES (?) RETURNING unit_id", number)
        await database.query("SELECT lease_id FROM leases WHERE unit_id = ?", unit)
        await database.query("INSERT INTO leases (unit_id, state) VALUES (?, 'open')", unit)
        if n % 2:
            await database.query("UPDATE leases SET state = 'planned' WHERE unit_id = ?", unit)
        await database.query("INSERT INTO unit_types (name, unit_id) VALUES ('standard', ?)", unit)
        ids.append(unit)
    return ids


async def _in_one_go(database: Database, numbers: list[str]) -> list[int]:
    """One statement a table, for any number of units."""
    rows = ", ".join("(?)" for _ in numbers)
    ids = await database.query(f"INSERT INTO units (unit_number) VALUES {rows} RETURNING unit_id", *numbers)
    added = "FROM units WHERE unit_id BETWEEN ? AND ?"
    first, last = min(ids), max(ids)
    await database.query("SELECT lease_id FROM leases WHERE unit_id BETWEEN ? AND ?", first, last)
    await database.query(f"INSERT INTO leases (unit_id, state) SELECT unit_id, 'planned' {added}", first, last)
    await database.query(f"INSERT INTO unit_types (name, unit_id) SELECT 'standard', unit_id {added}", first, last)
    return sorted(ids)
