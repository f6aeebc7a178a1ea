"""A network for one agent, without root: loopback only, with our files mounted over the system's; see `mounting`.

network = PrivateNetwork({hosts_file: Path("/etc/hosts")})
await network.open("campaign/run/agent")
listening = await network.socket("stream", ("127.64.0.1", 443))      # our socket; only the agent can connect to it
argv = network.argv(["agent", "hello"], cwd)                         # runs the agent in the network
"""

import asyncio
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal

from wedgehog.harness.sandbox.cleanup import RUN_VARIABLE
from wedgehog.harness.sandbox.disk import PROGRAM
from wedgehog.harness.sandbox.mounting import DONE, PAGE, READY

WITHIN_S = 10.0
Enter = Callable[[Sequence[str], Path], Sequence[str]]


class NoNetworkError(Exception):
    """The private network cannot be created."""


class PrivateNetwork:
    """A user, mount and network namespace, and the process that keeps it and creates sockets in it."""

    def __init__(self, mounts: Mapping[Path, Path]) -> None:
        """`mounts`: which of our files or folders is mounted over which of the system's, inside the network."""
        self._mounts = [f"{source.absolute()}={target}" for source, target in mounts.items()]
        self._process: asyncio.subprocess.Process | None = None
        self._ours: socket.socket | None = None
        self._asking = asyncio.Lock()

    async def open(self, mark: str, enter: Enter = lambda argv, cwd: argv) -> None:
        """Create it, on the disk that `enter` enters. Its keeper process has `mark`. Errors: NoNetworkError."""
        self._ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.settimeout(WITHIN_S)
        with its:
            self._process = await asyncio.create_subprocess_exec(
                *enter([*PROGRAM, "connect", str(its.fileno()), *self._mounts], Path("/")),
                env={RUN_VARIABLE: mark},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                pass_fds=[its.fileno()],
                start_new_session=True,
            )
        reply, made = await self._received()
        _close_all(made)
        if reply != READY:
            reason = network_unavailable_reason() or "no reason given"
            raise NoNetworkError(f"cannot create a private network: {reason}")

    async def socket(self, kind: Literal["stream", "datagram"], address: tuple[str, int]) -> socket.socket:
        """A socket that is bound (and listens) in the network; the caller closes it. Errors: NoNetworkError."""
        assert self._ours is not None  # noqa: S101  it is open
        async with self._asking:
            self._ours.send(f"{kind} {address[0]} {address[1]}".encode())
            reply, made = await self._received()
        if reply != DONE or len(made) != 1:
            raise NoNetworkError(reply or "the process that keeps the agent's network has ended")
        return socket.socket(fileno=made[0])

    def argv(self, command: Sequence[str], cwd: Path) -> list[str]:
        """The command line that runs `command` in it; pid, signals and exit code are those of `command`."""
        pid = self._process.pid if self._process is not None else 0
        return [*PROGRAM, "enter", str(pid), str(cwd), *command]

    async def close(self) -> None:
        """End the keeper process; the network disappears with the last process in it."""
        if self._ours is not None:
            self._ours.close()
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def _received(self) -> tuple[str, list[int]]:
        assert self._ours is not None  # noqa: S101  it is open
        with suppress(OSError):
            reply, made, _, _ = await asyncio.to_thread(socket.recv_fds, self._ours, PAGE, 1)
            return reply.decode(), list(made)
        return "", []


def _close_all(handles: Sequence[int]) -> None:
    for handle in handles:
        socket.socket(fileno=handle).close()


@cache
def network_unavailable_reason() -> str | None:
    """Why this system cannot create a private network; None if it can. Tried once."""
    if sys.platform != "linux":
        return "private hosts need Linux user namespaces"
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(WITHIN_S)
    with ours, tempfile.NamedTemporaryFile(prefix="wedgehog-hosts-") as hosts:
        words = [*PROGRAM, "connect", str(its.fileno()), f"{hosts.name}=/etc/hosts"]
        with its:
            tried = subprocess.Popen(words, pass_fds=[its.fileno()], stderr=subprocess.PIPE, text=True)
        try:
            reply = ours.recv(PAGE).decode()
        except OSError as wrong:
            reply = str(wrong)
        ours.close()
        _, errors = tried.communicate()
    if reply == READY:
        return None
    return f"user namespaces do not work here: {(errors.strip().splitlines() or [reply])[-1]}"
