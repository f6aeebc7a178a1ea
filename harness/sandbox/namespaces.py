"""Namespaces for one agent, without root: each is kept by a process of `mounting`, and the agent enters it.

A private network has loopback only, and our files are mounted over the system's:

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
from typing import Any, Literal

from wedgehog.harness.sandbox.cleanup import RUN_VARIABLE
from wedgehog.harness.sandbox.mounting import DONE, PAGE, READY

PROGRAM = (sys.executable, "-I", "-S", str(Path(__file__).with_name("mounting.py")))
WITHIN_S = 10.0
Enter = Callable[[Sequence[str], Path], Sequence[str]]


class NoNetworkError(Exception):
    """The private network cannot be created."""


class Namespaces:
    """Namespaces, and the process that keeps them; they disappear with the last process in them."""

    _process: asyncio.subprocess.Process | None = None

    @property
    def _pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    async def _keep(self, argv: Sequence[str], mark: str, **more: Any) -> None:
        """Start the process that keeps them; it has `mark`."""
        self._process = await asyncio.create_subprocess_exec(
            *argv, env={RUN_VARIABLE: mark}, stderr=asyncio.subprocess.DEVNULL, start_new_session=True, **more
        )

    def argv(self, command: Sequence[str], cwd: Path) -> list[str]:
        """The command line that runs `command` in them; pid, signals and exit code are those of `command`."""
        return [*PROGRAM, "enter", str(self._pid), str(cwd), *command]

    async def close(self) -> None:
        """End the process that keeps them."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


def namespaces_refused(errors: str, otherwise: str) -> str:
    """Why `mounting` has failed here, by its last line."""
    return f"user namespaces do not work here: {(errors.strip().splitlines() or [otherwise])[-1]}"


class PrivateNetwork(Namespaces):
    """A user, mount and network namespace, and the process that keeps it and creates sockets in it."""

    def __init__(self, mounts: Mapping[Path, Path]) -> None:
        """`mounts`: which of our files or folders is mounted over which of the system's, inside the network."""
        self._mounts = [f"{source.absolute()}={target}" for source, target in mounts.items()]
        self._ours: socket.socket | None = None
        self._asking = asyncio.Lock()

    async def open(self, mark: str, enter: Enter = lambda argv, cwd: argv) -> None:
        """Create it, on the disk that `enter` enters. Its keeper process has `mark`. Errors: NoNetworkError."""
        self._ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.settimeout(WITHIN_S)
        with its:
            argv = enter([*PROGRAM, "connect", str(its.fileno()), *self._mounts], Path("/"))
            silent = asyncio.subprocess.DEVNULL
            await self._keep(argv, mark, stdin=silent, stdout=silent, pass_fds=[its.fileno()])
        reply, _ = await self._received()
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

    async def close(self) -> None:
        """End the keeper process; the network disappears with the last process in it."""
        if self._ours is not None:
            self._ours.close()
        await super().close()

    async def _received(self) -> tuple[str, list[int]]:
        assert self._ours is not None  # noqa: S101  it is open
        with suppress(OSError):
            reply, made, _, _ = await asyncio.to_thread(socket.recv_fds, self._ours, PAGE, 1)
            return reply.decode(), list(made)
        return "", []


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
    return namespaces_refused(errors, reply)
