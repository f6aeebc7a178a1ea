"""A second process beside the shim, for the two things that a process can't do for itself.

It outlives the shim by a moment: where an agent kills its tool by SIGKILL, it must be the tool that dies.
It stands in the shim's process group with every signal blocked: a signal that is pending there was sent to the whole
group, COMMAND has got it too, and must not get it twice (a second Ctrl-C means something else).
"""

import os
import signal
import socket
from contextlib import suppress

from wedgehog.harness.stdio_proxy.child import FORWARDED

BYE, PROTECT = 0, 255
"""Words to the guard, one byte each; any other is the number of a signal that it must forget."""
ANSWER_S = 1.0


class Guard:
    """Made before COMMAND is started, so that it holds none of its pipes open."""

    def __init__(self) -> None:
        """Fork it."""
        self._line, theirs = socket.socketpair()
        self._line.settimeout(ANSWER_S)
        # It is born deaf: a signal in its first moment would end it.
        ours = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _stand(theirs)
            finally:
                os._exit(0)
        signal.pthread_sigmask(signal.SIG_SETMASK, ours)
        theirs.close()

    def protect(self, pid: int) -> None:
        """From now on this process dies with us."""
        self._tell(bytes([PROTECT]) + pid.to_bytes(4, "big"))

    def went_to_group(self, number: int) -> bool:
        """Whether a signal that we have just got was sent to our whole process group (told by Linux only)."""
        try:
            with open(f"/proc/{self.pid}/status", "rb") as status:  # noqa: PTH123  pathlib is slow to import
                pending = next(line for line in status if line.startswith(b"ShdPnd:"))
        except (OSError, StopIteration):
            return False
        seen = bool(int(pending.split()[1], 16) >> (number - 1) & 1)
        if seen:
            self._tell(bytes([number]))
            with suppress(OSError):
                self._line.recv(1)  # it has forgotten: the next one of this number is a new one
        return seen

    def dismiss(self, *, wait: bool = True) -> None:
        """It has nothing to protect any more."""
        self._tell(bytes([BYE]))
        if wait:
            with suppress(OSError):
                os.waitpid(self.pid, 0)

    def _tell(self, word: bytes) -> None:
        with suppress(OSError):
            self._line.sendall(word)


def _stand(line: socket.socket) -> None:
    """Wait for the shim's end, or for a goodbye."""
    os.closerange(0, line.fileno())
    os.closerange(line.fileno() + 1, 1 << 16)
    protected = 0
    while word := _heard(line):
        if word[0] == BYE:
            return
        if word[0] == PROTECT:
            protected = int.from_bytes(line.recv(4, socket.MSG_WAITALL), "big")
        else:
            signal.sigtimedwait([word[0]], 0)
            with suppress(OSError):
                line.sendall(word)
    if protected:
        os.kill(protected, signal.SIGKILL)


def _heard(line: socket.socket) -> bytes:
    """The next word; none where the shim is gone, whatever it has left unread."""
    with suppress(OSError):
        return line.recv(1)
    return b""
