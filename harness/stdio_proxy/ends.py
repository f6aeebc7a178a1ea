"""Reading and writing what we were given as stdin and stdout, without ever waiting and without changing it.

`O_NONBLOCK` belongs to the open file, which the agent may share with us, so it is never set on a descriptor that we
did not make. A read is only tried when poll says that something is there. For a write that is not enough: a pipe with
room for one page blocks whoever writes two.
"""

import os
import select
import socket
import stat

CHUNK = 1 << 16
SAFE = 512
"""What a pipe with room takes without blocking (POSIX's PIPE_BUF)."""


class InputEnd:
    """A descriptor to read from."""

    def __init__(self, descriptor: int) -> None:
        """Ours from here on."""
        self.descriptor = descriptor

    def read(self) -> bytes | None:
        """What is there, up to a chunk; empty at the end, None where nothing is there after all."""
        try:
            return os.read(self.descriptor, CHUNK)
        except BlockingIOError:
            return None
        except OSError:
            return b""  # a terminal that has gone, a socket that was reset: nothing more will come

    def ready(self) -> bool:
        """Whether a read would say something at once."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def close(self) -> None:
        """The other side gets EPIPE from now on."""
        os.close(self.descriptor)


class OutputEnd:
    """A descriptor to write to. The reader's end may be a pipe, a socket (Node's are), a terminal or a file."""

    def __init__(self, descriptor: int, *, ours: bool = False) -> None:
        """`ours`: we made it, it doesn't block."""
        self.descriptor = descriptor
        mode = os.fstat(descriptor).st_mode
        self._socket = socket.socket(fileno=os.dup(descriptor)) if stat.S_ISSOCK(mode) else None
        self._size = CHUNK if ours or stat.S_ISREG(mode) else SAFE
        if stat.S_ISFIFO(mode) and not ours:
            self._reopen()

    def _reopen(self) -> None:
        """An open file of our own on the same pipe, which we may set as we like (Linux)."""
        try:
            own = os.open(f"/proc/self/fd/{self.descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        os.dup2(own, self.descriptor, inheritable=False)
        os.close(own)
        self._size = CHUNK

    def write(self, data: bytes) -> int | None:
        """How many bytes went in without waiting; None: nobody will ever read them."""
        try:
            if self._socket is not None:
                return self._socket.send(data, socket.MSG_DONTWAIT)
            return os.write(self.descriptor, data[: self._size] if len(data) > self._size else data)
        except BlockingIOError:
            return 0
        except OSError:
            return None

    def read_by_somebody(self) -> bool:
        """Whether a reader is left."""
        poll = select.poll()
        poll.register(self.descriptor, 0)
        return not poll.poll(0)

    def close(self) -> None:
        """Whoever reads sees the end behind the last byte."""
        os.close(self.descriptor)
        if self._socket is not None:
            self._socket.close()
