"""A second process beside the proxy, for two things that the proxy cannot do itself.

If the agent kills the proxy with SIGKILL, the guard kills COMMAND. And it is in the proxy's process group with every
signal blocked: a signal that is pending there was sent to the whole group, so COMMAND has it too and must not get it
twice (a second Ctrl-C has another meaning).
"""

import os
import signal
import socket
from contextlib import suppress

from wedgehog.harness.stdio_proxy.child import FORWARDED

BYE, PROTECT = 0, 255
"""Messages to the guard, one byte each; any other byte is the number of a pending signal to clear."""
ANSWER_S = 1.0


class Guard:
    """Forked before COMMAND starts, so that it does not keep COMMAND's pipes open."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair()
        self._line.settimeout(ANSWER_S)
        # Blocked before the fork: otherwise an early signal would end the guard.
        ours = signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                _serve(theirs)
            finally:
                os._exit(0)
        signal.pthread_sigmask(signal.SIG_SETMASK, ours)
        theirs.close()

    def protect(self, pid: int) -> None:
        """From now on, kill the process `pid` when the proxy dies."""
        self._send(bytes([PROTECT]) + pid.to_bytes(4, "big"))

    def went_to_group(self, number: int) -> bool:
        """Whether a signal that we just received was sent to our whole process group (Linux; elsewhere False)."""
        try:
            with open(f"/proc/{self.pid}/status", "rb") as status:  # noqa: PTH123  pathlib is slow to import
                pending = next(line for line in status if line.startswith(b"ShdPnd:"))
        except (OSError, StopIteration):
            return False
        seen = bool(int(pending.split()[1], 16) >> (number - 1) & 1)
        if seen:
            self._send(bytes([number]))
            with suppress(OSError):
                self._line.recv(1)  # the guard has cleared it, so the next pending one is new
        return seen

    def dismiss(self, *, wait: bool = True) -> None:
        """End the guard; COMMAND is no longer protected."""
        self._send(bytes([BYE]))
        if wait:
            with suppress(OSError):
                os.waitpid(self.pid, 0)

    def _send(self, word: bytes) -> None:
        with suppress(OSError):
            self._line.sendall(word)


def _serve(line: socket.socket) -> None:
    """Wait for BYE, or for the end of the proxy."""
    os.closerange(0, line.fileno())
    os.closerange(line.fileno() + 1, 1 << 16)
    protected = 0
    while word := _received(line):
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


def _received(line: socket.socket) -> bytes:
    """The next message; empty if the proxy has ended."""
    with suppress(OSError):
        return line.recv(1)
    return b""
