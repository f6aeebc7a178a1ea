"""Agents whose session is a SQLite database: `database_agents.py NAME URL SESSION MESSAGE`.

`waits`, `logs`, `retries` and `warns` are correct. Each of the others has one bug.
"""

import contextlib
import json
import sqlite3
import sys
import time
from pathlib import Path

from plain_http import post

HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
TABLE = "CREATE TABLE IF NOT EXISTS said (role TEXT, content TEXT)"


class Waits:
    """Waits for a lock as long as the library does by default."""

    busy_s, mode = 5, "DELETE"

    def __init__(self, folder):
        self.path = Path(folder) / "session.db"
        self.db = None

    def open(self):
        self.db = sqlite3.connect(self.path, timeout=self.busy_s, isolation_level=None)
        self.db.execute(f"PRAGMA journal_mode = {self.mode}")
        self.db.execute(TABLE)

    def read(self):
        return [{"role": role, "content": text} for role, text in self.db.execute("SELECT role, content FROM said")]

    def add(self, *messages):
        self.db.execute("BEGIN")
        self.db.executemany("INSERT INTO said VALUES (?, ?)", messages)
        self.db.execute("COMMIT")

    def answer(self, url, message):
        self.open()
        said = [*self.read(), {"role": "user", "content": message}]
        body = {"model": "claude-sonnet-4-6", "max_tokens": 900, "messages": said}
        reply = json.loads(post(f"{url}/v1/messages", body, HEADERS, timeout_s=30).read())
        text = reply["content"][0]["text"]
        self.add(("user", message), ("assistant", text))
        return text


class Logs(Waits):
    """Readers are not kept out by a writer."""

    mode = "WAL"


class Retries(Waits):
    """Does not wait in the library, but tries again itself."""

    busy_s = 0

    def add(self, *messages):
        for pause_s in (0.5, 1, 2, 3):
            try:
                return self.added(*messages)
            except sqlite3.OperationalError:
                time.sleep(pause_s)
        return self.added(*messages)

    def added(self, *messages):
        try:
            Waits.add(self, *messages)
        except sqlite3.OperationalError:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise


class Warns(Waits):
    """Answers, and says that it could not store the turn."""

    def add(self, *messages):
        try:
            Waits.add(self, *messages)
        except sqlite3.OperationalError as wrong:
            print(f"Error: this turn could not be stored: {wrong}", file=sys.stderr)


class Hurries(Waits):
    """Waits for no lock."""

    busy_s = 0


class Patient(Waits):
    """Waits for a lock for an hour."""

    busy_s = 3600


class Silent(Waits):
    """Ends without a word where it cannot store."""

    busy_s = 0

    def answer(self, url, message):
        try:
            return super().answer(url, message)
        except sqlite3.OperationalError:
            return ""


class Forgets(Waits):
    """Answers, and forgets what it could not store."""

    busy_s = 0

    def add(self, *messages):
        with contextlib.suppress(sqlite3.OperationalError):
            Waits.add(self, *messages)


class BeginsAnew(Hurries):
    """Takes a database that it cannot write for a broken one, and makes a new one."""

    def answer(self, url, message):
        try:
            return super().answer(url, message)
        except sqlite3.OperationalError as wrong:
            self.path.unlink()
            raise SystemExit(f"Error: the session was damaged: {wrong}") from None


if __name__ == "__main__":
    name, url, folder, message = sys.argv[1:]
    known = (Waits, Logs, Retries, Warns, Hurries, Patient, Silent, Forgets, BeginsAnew)
    kinds = {kind.__name__.lower(): kind for kind in known}
    try:
        print(kinds[name](folder).answer(url, message))
    except (OSError, sqlite3.Error) as wrong:
        sys.exit(f"Error: {wrong}")
