"""The harness's address, and the control connection to it: lines of words, which cross no link and get no fault.

| the proxy sends | the harness sends |
|---|---|
| `open SECRET NAME PID OUT_PORT IN_PORT`: ports at which it awaits the links' upstream ends | `links ADDRESS ADDRESS` |
| `child PID OUT_PORT IN_PORT`: COMMAND's pid, and the source ports of the upstream ends | `until WAY BYTE NUMBER` |
| `stopped WAY BYTE NUMBER`: it has stopped sending at this byte | `until WAY now NUMBER`, `until WAY none NUMBER` |
| `ended WAY fin BYTES`: the link ended before COMMAND did | |
| `abandoned`: the reader of COMMAND's stdout has closed it | |
| `trouble WORDS` | |
| `exit STATUS`, then `closed OUT_BYTES IN_BYTES` | |

Both directions stop at byte 0 until the first `until`.
"""

import contextlib
import os
import socket
from collections.abc import Mapping
from typing import NamedTuple

from wedgehog.harness.stdio_proxy import ADDRESS_FILE, ADDRESS_VARIABLE, RUN_VARIABLE

TIMEOUT_S = 30.0


class HarnessAddress(NamedTuple):
    """Where the harness listens, its secret, and the mark of the run's processes."""

    host: str
    port: int
    secret: str
    mark: str


def find_harness(env: Mapping[str, str]) -> HarnessAddress | None:
    """The harness named in the environment or in a file in HOME; None if there is none or the address is malformed."""
    lines = env.get(ADDRESS_VARIABLE, "").split() or _address_file(env.get("HOME", ""))
    mark = env.get(RUN_VARIABLE) or (lines[1] if len(lines) > 1 else "")
    parts = lines[0].rsplit(":", 2) if lines else []
    if len(parts) != 3 or not parts[1].isdecimal():
        return None
    return HarnessAddress(parts[0], int(parts[1]), parts[2], mark)


def _address_file(home: str) -> list[str]:
    try:
        with open(os.path.join(home, ADDRESS_FILE), encoding="utf-8") as file:  # noqa: PTH118, PTH123  pathlib is slow
            return file.read().split()
    except OSError:
        return []


class HarnessGoneError(OSError):
    """The harness does not answer."""


class HarnessConnection:
    """Lines to and from the harness."""

    def __init__(self, host: str, port: int) -> None:
        """Connect. Errors: OSError."""
        self.socket = socket.create_connection((host, port), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""

    def say(self, *words: object) -> None:
        """Send one line. Errors are ignored here: the next read reports a closed connection."""
        with contextlib.suppress(OSError):
            self.socket.sendall(" ".join(map(str, words)).encode() + b"\n")

    def ask(self, expected: str) -> list[str]:
        """Wait for a line that begins with `expected`; return its other words. Errors: HarnessGoneError."""
        while b"\n" not in self._buffer:
            self._read()
        line, _, self._buffer = self._buffer.partition(b"\n")
        words = line.decode().split()
        if words[:1] != [expected]:
            raise HarnessGoneError(f"expected {expected!r}, received {line.decode()!r}")
        return words[1:]

    def received(self) -> list[list[str]]:
        """The lines received, after poll has reported data; does not wait. Errors: HarnessGoneError."""
        self._read()
        return self.buffered()

    def buffered(self) -> list[list[str]]:
        """Complete lines that were received but not yet handled."""
        *lines, self._buffer = self._buffer.split(b"\n")
        return [line.decode().split() for line in lines]

    def _read(self) -> None:
        try:
            data = self.socket.recv(4096)
        except OSError as wrong:
            raise HarnessGoneError(str(wrong)) from wrong
        if not data:
            raise HarnessGoneError("it closed the connection")
        self._buffer += data
