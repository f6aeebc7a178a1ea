"""COMMAND itself: started in place of us, told every signal that we are told, and copied in its death."""

import errno
import os
import resource
import signal
import sys

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
"""Python ignores these; a command that it starts must not."""


class Child:
    """The process of COMMAND."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        """Start it, its stdin and stdout pipes of ours. Errors: OSError."""
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        # Descriptor numbers that dup2 would trample on: where the agent gave us no stdin or stdout at all.
        moves = [(os.POSIX_SPAWN_DUP2, theirs_in, 0), (os.POSIX_SPAWN_DUP2, theirs_out, 1)]
        self.pid = os.posix_spawnp(argv[0], argv, env, file_actions=moves, setsigdef=DEFAULT_AGAIN)
        os.close(theirs_in)
        os.close(theirs_out)
        os.set_blocking(ours_in, False)
        os.set_blocking(ours_out, False)
        self.stdin, self.stdout = OutputEnd(ours_in, ours=True), InputEnd(ours_out)
        self.status: int | None = None
        """Its exit code once it is dead, minus the signal's number where one ended it."""

    def look(self) -> None:
        """See whether it is dead."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)

    def tell(self, number: int) -> None:
        """Pass a signal on."""
        if self.status is None:
            os.kill(self.pid, number)


def become(argv: list[str]) -> int:
    """Run COMMAND in this very process. Returns only where it can't be started: a shell's exit code for that."""
    for number in DEFAULT_AGAIN:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(argv[0], argv)  # noqa: S606  COMMAND is what the agent wrote, no shell
    except OSError as wrong:
        return refusal(argv[0], wrong)


def refusal(command: str, wrong: OSError) -> int:
    """Say that a command can't be started, with the exit code that a shell gives."""
    sys.stderr.write(f"wedgehog-pipe: cannot start {command!r}: {wrong.strerror}\n")
    return 127 if wrong.errno == errno.ENOENT else 126


def die_like(status: int) -> None:
    """End this process as that one ended."""
    if status < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core dump of one crash is enough
        number = -status
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        os.kill(os.getpid(), number)
    os._exit(status if status >= 0 else 128 - status)
