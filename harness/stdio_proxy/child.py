"""The process of COMMAND: started by the proxy, receives the proxy's signals; the proxy exits with its status."""

import errno
import os
import resource
import signal
import sys
from typing import NoReturn

from wedgehog.harness.stdio_proxy.ends import InputEnd, OutputEnd

FORWARDED = (
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGCONT,
    signal.SIGTSTP,
)
DEFAULT_AGAIN = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these signals; a command that it starts must not inherit that."""


class Child:
    """The process of COMMAND."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        """Start it with pipes for stdin and stdout. Errors: OSError."""
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        # Both are above 2 (see main.reserve_standard_descriptors), so neither dup2 overwrites the other.
        moves = [(os.POSIX_SPAWN_DUP2, theirs_in, 0), (os.POSIX_SPAWN_DUP2, theirs_out, 1)]
        self.pid = os.posix_spawnp(argv[0], argv, env, file_actions=moves, setsigdef=DEFAULT_AGAIN)
        os.close(theirs_in)
        os.close(theirs_out)
        os.set_blocking(ours_in, False)
        os.set_blocking(ours_out, False)
        self.stdin, self.stdout = OutputEnd(ours_in, ours=True), InputEnd(ours_out)
        self.status: int | None = None
        """Its exit code once it has ended, or the negative number of the signal that ended it."""

    def poll(self) -> None:
        """Update `status`."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.status is None:
            os.kill(self.pid, number)


def become(argv: list[str]) -> int:
    """Run COMMAND in this process. Returns only if it cannot be started: the exit code that a shell gives."""
    for number in DEFAULT_AGAIN:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)  # noqa: S606  COMMAND is what the agent wrote, no shell
    except OSError as wrong:
        return refusal(argv[0], wrong)


def refusal(command: str, wrong: OSError) -> int:
    """Print that a command cannot be started; return the exit code that a shell gives."""
    sys.stderr.write(f"wedgehog-pipe: cannot start {command!r}: {wrong.strerror}\n")
    return 127 if wrong.errno == errno.ENOENT else 126


def exit_like(status: int) -> NoReturn:
    """End this process with the exit code or the signal `status`."""
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # COMMAND may have dumped core already
        number = -status
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        os.kill(os.getpid(), number)
    os._exit(status if status >= 0 else 128 - status)
