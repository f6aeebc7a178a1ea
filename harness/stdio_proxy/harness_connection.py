"""The control connection to the harness: words on lines, past every link, so that no fault touches it.

| shim says | harness says |
|---|---|
| `open SECRET NAME PID OUT_PORT IN_PORT`: where it listens for the links' upstream ends | `links HOST:PORT HOST:PORT` |
| `child PID OUT_PORT IN_PORT`: COMMAND, and where the upstream ends came from | `until WAY BYTE NUMBER` |
| `stands WAY BYTE NUMBER`: not a byte more has gone into the link | `until WAY now NUMBER`, `until WAY none NUMBER` |
| `ended WAY fin BYTES`: the link ended before COMMAND did | |
| `abandoned`: nobody reads COMMAND's stdout any more | |
| `trouble WORDS` | |
| `exit STATUS`, then `closed OUT_BYTES IN_BYTES` | |

Both ways stand at byte 0 until they are told otherwise.
"""

import contextlib
import socket

TIMEOUT_S = 30.0


class HarnessGoneError(OSError):
    """The harness does not answer any more."""


class HarnessConnection:
    """Lines to and from the harness."""

    def __init__(self, host: str, port: int) -> None:
        """Connect. Errors: OSError."""
        self.socket = socket.create_connection((host, port), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._come = b""

    def say(self, *words: object) -> None:
        """One line; a harness that has gone is noticed by who reads."""
        with contextlib.suppress(OSError):
            self.socket.sendall(" ".join(map(str, words)).encode() + b"\n")

    def ask(self, expected: str) -> list[str]:
        """Wait for the line that begins with that word; what follows it. Errors: HarnessGoneError."""
        while b"\n" not in self._come:
            self._read()
        line, _, self._come = self._come.partition(b"\n")
        words = line.decode().split()
        if words[:1] != [expected]:
            raise HarnessGoneError(f"it said {line.decode()!r} where {expected!r} was expected")
        return words[1:]

    def heard(self) -> list[list[str]]:
        """The lines that have come, read once something can be read; never waits then. Errors: HarnessGoneError."""
        self._read()
        return self.left()

    def left(self) -> list[list[str]]:
        """Whole lines that have come already."""
        *lines, self._come = self._come.split(b"\n")
        return [line.decode().split() for line in lines]

    def _read(self) -> None:
        try:
            data = self.socket.recv(4096)
        except OSError as wrong:
            raise HarnessGoneError(str(wrong)) from wrong
        if not data:
            raise HarnessGoneError("it has hung up")
        self._come += data
