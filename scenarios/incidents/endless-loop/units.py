"""The tool `update_units`, and the remote database that it asks four or five times a unit."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

QUERY_S = 0.05  # one round trip to the report's database
MOST_UNITS = 1000
TABLES = """
    CREATE TABLE IF NOT EXISTS units (unit_id INTEGER PRIMARY KEY, unit_number TEXT);
    CREATE TABLE IF NOT EXISTS leases (lease_id INTEGER PRIMARY KEY, unit_id INTEGER, state TEXT);
    CREATE TABLE IF NOT EXISTS unit_types (name TEXT, unit_id INTEGER);
"""
TOOL = {
    "name": "update_units",
    "description": "Create or update units of the project with their leases and unit types.",
    "input_schema": {
        "type": "object",
        "properties": {"count": {"type": "integer", "minimum": 1, "maximum": MOST_UNITS}},
        "required": ["count"],
    },
}


class Units:
    """Every query costs a round trip, whatever it asks for."""

    def __init__(self, folder: Path, time_scale: float, many_rows: bool) -> None:
        self._database = sqlite3.connect(folder / "units.sqlite", isolation_level=None)
        self._database.executescript("PRAGMA synchronous = OFF;" + TABLES)
        self._log = folder / "work.jsonl"
        self._query_s = QUERY_S / time_scale
        self._many_rows = many_rows
        self._queries = 0

    async def update(self, count: int) -> dict[str, Any]:
        numbers = [str(100 + n) for n in range(1, min(count, MOST_UNITS) + 1)]
        before = self._queries
        ids = await (self._in_one_go(numbers) if self._many_rows else self._one_by_one(numbers))
        self._note(len(numbers), self._queries - before)
        results = [{"unit_id": id_, "unit_number": number} for id_, number in zip(ids, numbers, strict=True)]
        return {"success": True, "mutation": "update_units", "count": len(results), "results": results}

    async def _one_by_one(self, numbers: list[str]) -> list[int]:
        """Four queries a unit, and a fifth for every second one: 180 round trips for 40 units."""
        ids = []
        for n, number in enumerate(numbers):
            unit = await self._query("INSERT INTO units (unit_number) VALUES (?)", number)
            await self._query("SELECT lease_id FROM leases WHERE unit_id = ?", unit)
            await self._query("INSERT INTO leases (unit_id, state) VALUES (?, 'open')", unit)
            if n % 2:
                await self._query("UPDATE leases SET state = 'planned' WHERE unit_id = ?", unit)
            await self._query("INSERT INTO unit_types (name, unit_id) VALUES ('standard', ?)", unit)
            ids.append(unit)
        return ids

    async def _in_one_go(self, numbers: list[str]) -> list[int]:
        """One statement a table, however many units there are."""
        rows = ", ".join("(?)" for _ in numbers)
        last = await self._query(f"INSERT INTO units (unit_number) VALUES {rows}", *numbers)
        first = last - len(numbers) + 1
        added = "FROM units WHERE unit_id BETWEEN ? AND ?"
        await self._query("SELECT lease_id FROM leases WHERE unit_id BETWEEN ? AND ?", first, last)
        await self._query(f"INSERT INTO leases (unit_id, state) SELECT unit_id, 'planned' {added}", first, last)
        await self._query(f"INSERT INTO unit_types (name, unit_id) SELECT 'standard', unit_id {added}", first, last)
        return list(range(first, last + 1))

    async def _query(self, statement: str, *values: Any) -> int:
        await asyncio.sleep(self._query_s)
        self._queries += 1
        return self._database.execute(statement, values).lastrowid or 0

    def _note(self, units: int, queries: int) -> None:
        """Seconds as the report counts them: latency alone, unscaled."""
        line = {"tool": "update_units", "units": units, "queries": queries, "latency_s": round(queries * QUERY_S, 2)}
        with self._log.open("a") as file:
            file.write(json.dumps(line) + "\n")
