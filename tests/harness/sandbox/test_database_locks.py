"""The lock of another writer on the agent's databases."""

import sqlite3
from pathlib import Path

import pytest

from wedgehog.harness.sandbox.database_locks import DatabaseLocks


def database(path: Path, mode: str = "DELETE") -> Path:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode = {mode}")
    connection.execute("CREATE TABLE said (text)")
    connection.commit()
    connection.close()
    return path


def works(path: Path, query: str) -> bool:
    connection = sqlite3.connect(path, timeout=0)
    try:
        connection.execute(query)
        connection.commit()
    except sqlite3.OperationalError as wrong:
        assert "locked" in str(wrong)
        return False
    finally:
        connection.close()
    return True


READ, WRITE = "SELECT * FROM said", "INSERT INTO said VALUES ('x')"


@pytest.mark.parametrize(("mode", "reads"), [("DELETE", False), ("WAL", True)])
async def test_no_other_process_can_write_until_the_lock_is_given_back(tmp_path: Path, mode: str, reads: bool):
    """Nor read, where the database has no write-ahead log. Reading its file here does not break the lock."""
    file = database(tmp_path / "session.db", mode)
    (tmp_path / "notes.txt").write_text("no database")
    locks = DatabaseLocks([tmp_path, tmp_path / "nowhere"], "campaign/run")
    assert await locks.lock() == "another process holds the write lock of session.db"
    assert file.read_bytes()
    assert (works(file, READ), works(file, WRITE)) == (reads, False)
    await locks.release()
    assert works(file, READ) and works(file, WRITE)


async def test_without_a_database_that_can_be_locked_there_is_no_proof(tmp_path: Path):
    """An agent may hold the lock itself."""
    assert await DatabaseLocks([tmp_path], "campaign/run").lock() == ""
    database(tmp_path / "session.db")
    agents, ours = (DatabaseLocks([tmp_path], "campaign/run") for _ in range(2))
    assert await agents.lock() and await ours.lock() == ""
    await ours.release()
    await agents.release()
