"""A network for one agent, without root: nothing but loopback, and files of ours over the system's; see `mounting`.

network = PrivateNetwork({hosts_file: Path("/etc/hosts")})
await network.open("campaign/run/agent")
listening = await network.socket("stream", ("127.64.0.1", 443))      # ours, and only the agent can call it
argv = network.argv(["agent", "hello"], cwd)                         # the agent, on it
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
    """A network of one's own cannot be had; one line."""


class PrivateNetwork:
    """A user, mount and network namespace; whoever holds it hands out sockets of it."""

    def __init__(self, laid: Mapping[Path, Path]) -> None:
        """`laid`: which file or folder of ours lies over which of the system's, for whoever is started there."""
        self._laid = [f"{source.absolute()}={target}" for source, target in laid.items()]
        self._process: asyncio.subprocess.Process | None = None
        self._ours: socket.socket | None = None
        self._asking = asyncio.Lock()

    async def open(self, mark: str, enter: Enter = lambda argv, cwd: argv) -> None:
        """Make it, on a disk that `enter` enters; its keeper carries `mark`. Errors: NoNetworkError."""
        self._ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.settimeout(WITHIN_S)
        with its:
            self._process = await asyncio.create_subprocess_exec(
                *enter([*PROGRAM, "connect", str(its.fileno()), *self._laid], Path("/")),
                env={RUN_VARIABLE: mark},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                pass_fds=[its.fileno()],
                start_new_session=True,
            )
        said, made = await self._received()
        _close_all(made)
        if said != READY:
            raise NoNetworkError(f"no network of its own can be made here: {why_no_network() or 'it did not say why'}")

    async def socket(self, kind: Literal["stream", "datagram"], address: tuple[str, int]) -> socket.socket:
        """A socket that is bound there (and listens), for whoever asked to close. Errors: NoNetworkError."""
        assert self._ours is not None  # noqa: S101  it is open
        async with self._asking:
            self._ours.send(f"{kind} {address[0]} {address[1]}".encode())
            said, made = await self._received()
        if said != DONE or len(made) != 1:
            raise NoNetworkError(said or "whoever keeps the agent's network is gone")
        return socket.socket(fileno=made[0])

    def argv(self, command: Sequence[str], cwd: Path) -> list[str]:
        """What to start, so that it becomes `command` there; its pid, signals and exit code are the command's."""
        pid = self._process.pid if self._process is not None else 0
        return [*PROGRAM, "enter", str(pid), str(cwd), *command]

    async def close(self) -> None:
        """Its keeper ends, and with the last process on it the network."""
        if self._ours is not None:
            self._ours.close()
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def _received(self) -> tuple[str, list[int]]:
        assert self._ours is not None  # noqa: S101  it is open
        with suppress(OSError):
            said, made, _, _ = await asyncio.to_thread(socket.recv_fds, self._ours, PAGE, 1)
            return said.decode(), list(made)
        return "", []


def _close_all(handles: Sequence[int]) -> None:
    for handle in handles:
        socket.socket(fileno=handle).close()


@cache
def why_no_network() -> str:
    """Why no agent can have a network of its own on this system; empty where it can. Tried once."""
    if sys.platform != "linux":
        return "hosts of an agent's own need the user namespaces of Linux"
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(WITHIN_S)
    with ours, tempfile.NamedTemporaryFile(prefix="wedgehog-hosts-") as hosts:
        words = [*PROGRAM, "connect", str(its.fileno()), f"{hosts.name}=/etc/hosts"]
        with its:
            tried = subprocess.Popen(words, pass_fds=[its.fileno()], stderr=subprocess.PIPE, text=True)
        try:
            heard = ours.recv(PAGE).decode()
        except OSError as wrong:
            heard = str(wrong)
        ours.close()
        _, said = tried.communicate()
    if heard == READY:
        return ""
    return f"user namespaces do not work here: {(said.strip().splitlines() or [heard])[-1]}"
