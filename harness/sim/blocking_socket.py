"""The connections of blocking clients: httpx, openai and anthropic, requests, and `http.client`.

They connect with `socket.create_connection`, or urllib3's function of that name, and need few methods of a socket.
"""

import asyncio
import contextlib
import errno
import io
import os
import socket
from collections.abc import Coroutine, Iterator
from typing import Any
from unittest import mock

from wedgehog.harness.network.base import Address
from wedgehog.harness.sim.blocking import Waited, can_wait, wait_for
from wedgehog.harness.sim.errors import SimUnsupportedError
from wedgehog.harness.sim.poll_fds import POLL_FDS
from wedgehog.harness.sim.refused import RefusesRealThings

Data = bytes | bytearray | memoryview


class BlockingSocket:
    """A connected TCP socket; it blocks the function that called it, not the event loop."""

    family, type, proto = socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeout_s: float | None) -> None:
        """`timeout_s` of None waits for ever."""
        self._reader, self._writer, self._timeout_s = reader, writer, timeout_s
        self._files = 0
        self._is_closed = False

    def settimeout(self, value: float | None) -> None:
        """Set the time limit of each operation."""
        self._timeout_s = value

    def gettimeout(self) -> float | None:
        """The time limit of each operation."""
        return self._timeout_s

    def setsockopt(self, *option: Any) -> None:
        """No option has an effect."""

    def getsockopt(self, *option: Any) -> int:
        """Only TLS asks, for the kind of a socket."""
        raise wait_for(_refusal("TLS of a blocking client"))

    def getsockname(self) -> Address:
        """The own address."""
        return self._writer.get_extra_info("sockname")  # type: ignore[no-any-return]

    def getpeername(self) -> Address:
        """The address of the other side."""
        return self._writer.get_extra_info("peername")  # type: ignore[no-any-return]

    def fileno(self) -> int:
        """A descriptor that polls as this socket would."""
        if self._is_closed:
            return -1
        reader = self._reader
        readable = reader.at_eof() or reader.exception() or reader._buffer or reader._eof  # type: ignore[attr-defined]
        return POLL_FDS.readable if readable else POLL_FDS.silent

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Wait for bytes; none at the end."""
        return self._wait(self._reader.read(size))

    def recv_into(self, buffer: bytearray | memoryview, size: int = 0, flags: int = 0) -> int:
        """Wait for bytes, and put them into the buffer."""
        data = self.recv(size or len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def send(self, data: Data, flags: int = 0) -> int:
        """Send all of the bytes."""
        self._writer.write(data) if not self._is_closed else None
        self._wait(self._writer.drain())
        return len(data)

    def sendall(self, data: Data, flags: int = 0) -> None:
        """Send all of the bytes."""
        self.send(data)

    def shutdown(self, how: int) -> None:
        """Send FIN, unless only reading ends."""
        if how != socket.SHUT_RD:
            self._writer.write_eof()

    def makefile(self, mode: str = "r", buffering: int = -1, **_: Any) -> io.BufferedReader:
        """A file to read from, as `http.client` wants it; the socket closes after its files."""
        if mode != "rb":
            raise ValueError(f"a simulated socket has no file of mode {mode!r}, only 'rb'")
        self._files += 1
        return io.BufferedReader(_ReadFile(self), max(buffering, io.DEFAULT_BUFFER_SIZE))

    def file_closed(self) -> None:
        """A file of `makefile` was closed."""
        self._files -= 1
        self._close_if_unused()

    def close(self) -> None:
        """Close after the files of `makefile`."""
        self._is_closed = True
        self._close_if_unused()

    def __enter__(self) -> "BlockingSocket":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _close_if_unused(self) -> None:
        if self._is_closed and self._files <= 0:
            self._writer.close()

    def _wait(self, operation: Coroutine[Any, Any, Waited]) -> Waited:
        if self._is_closed and self._files <= 0:
            operation.close()
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return wait_for(_within(operation, self._timeout_s))


class _ReadFile(io.RawIOBase):
    def __init__(self, of: BlockingSocket) -> None:
        self._socket = of

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._socket.recv_into(buffer)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._socket.file_closed()


@contextlib.contextmanager
def blocking_connections() -> Iterator[None]:
    """Let blocking functions connect in the simulated world. The guard refuses it to other code."""
    with contextlib.ExitStack() as stack:
        for module in _connecting():
            real = module.create_connection
            stack.enter_context(mock.patch.object(module, "create_connection", _instead_of(real)))
        yield


def _connecting() -> list[Any]:
    try:
        from urllib3.util import connection
    except ImportError:
        return [socket]
    return [socket, connection]


def _instead_of(real: Any) -> Any:
    def create_connection(address: Address, timeout: Any = None, *more: Any, **options: Any) -> Any:
        if not can_wait():
            return real(address, timeout, *more, **options)
        # What is no number means the default, which is none.
        limit_s = float(timeout) if isinstance(timeout, int | float) else None
        opened = _within(asyncio.open_connection(*address), limit_s)
        return BlockingSocket(*wait_for(opened), limit_s)

    return create_connection


async def _within(operation: Coroutine[Any, Any, Waited], limit_s: float | None) -> Waited:
    try:
        async with asyncio.timeout(limit_s):
            return await operation
    except TimeoutError:
        raise TimeoutError("timed out") from None


async def _refusal(what: str) -> SimUnsupportedError:
    loop = asyncio.get_running_loop()
    return loop.refusal(what) if isinstance(loop, RefusesRealThings) else SimUnsupportedError(what)
