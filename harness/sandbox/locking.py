"""A process that writes to SQLite databases, and keeps their locks until its standard input ends.

    locking.py DATABASE…        prints the path of each that it has locked, and then an empty line

Standard library only. A process of its own keeps the locks: those of POSIX are lost as soon as their process closes any
other descriptor of the file, and the harness reads session files.
"""

import sqlite3
import sys
from contextlib import suppress

WITHIN_S = 0.5
"""How long a writer of the agent may keep the lock from us."""


def locked(path: str) -> sqlite3.Connection | None:
    """A connection that holds the lock of a writer; None if it cannot be had.

    Other connections cannot write meanwhile. Without a write-ahead log they cannot read either.
    """
    with suppress(sqlite3.Error):
        connection = sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=WITHIN_S, isolation_level=None)
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error:
            connection.close()
        else:
            return connection
    return None


def main() -> None:
    """Lock, tell, wait, and undo."""
    held = []
    for path in sys.argv[1:]:
        if (connection := locked(path)) is not None:
            held.append(connection)
            print(path)
    print(flush=True)
    sys.stdin.read()
    for connection in held:
        connection.execute("ROLLBACK")
        connection.close()


if __name__ == "__main__":
    main()
