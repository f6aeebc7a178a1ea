"""Read and write stdin and stdout without blocking and without changing their flags.

`O_NONBLOCK` belongs to the open file, which the agent may share with us, so it is set only on descriptors that we
created. A read is tried only when poll reports data. A write needs more care: a pipe with room for one page blocks
a write of two.
"""

import os
import select
import socket
import stat

CHUNK = 1 << 16
SAFE = 512
"""A pipe that poll reports as writable takes this much without blocking (POSIX's PIPE_BUF)."""


class InputEnd:
    """A descriptor to read from."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def read(self) -> bytes | None:
        """The available bytes, up to a chunk; empty at the end, None if nothing is available."""
        try:
            return os.read(self.descriptor, CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""  # a closed terminal or a reset socket: no more data

    def ready(self) -> bool:
        """Whether a read would return at once."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close it; the writer gets EPIPE from now on."""
        os.close(self.descriptor)


class OutputEnd:
    """A descriptor to write to: a pipe, a socket (Node uses them), a terminal or a file."""

    def __init__(self, descriptor: int, *, ours: bool = False) -> None:
        """`ours`: we created the descriptor, and it does not block."""
        self.descriptor = descriptor
        mode = os.fstat(descriptor).st_mode
        self._socket = socket.socket(fileno=os.dup(descriptor)) if stat.S_ISSOCK(mode) else None
        self._size = CHUNK if ours or stat.S_ISREG(mode) else SAFE
        if stat.S_ISFIFO(mode) and not ours:
            self._reopen()

    def _reopen(self) -> None:
        """Replace it by a non-blocking open file on the same pipe, which we do not share (Linux)."""
        try:
            own = os.open(f"/proc/self/fd/{self.descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        os.dup2(own, self.descriptor, inheritable=False)
        os.close(own)
        self._size = CHUNK

    def write(self, data: bytes) -> int | None:
        """The number of bytes written without waiting; None if the reader has closed it."""
        try:
            if self._socket is not None:
                return self._socket.send(data, socket.MSG_DONTWAIT)
            return os.write(self.descriptor, data[: self._size] if len(data) > self._size else data)
        except BlockingIOError:
            return 0
        except OSError:
            return None

    def has_reader(self) -> bool:
        """Whether the other end is open."""
        poll = select.poll()
        poll.register(self.descriptor, 0)
        return not poll.poll(0)

    def close(self) -> None:
        """Close it; the reader sees the end after the last byte."""
        os.close(self.descriptor)
        if self._socket is not None:
            self._socket.close()
