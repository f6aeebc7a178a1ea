"""Commands started directly, behind `wedgehog-pipe` without a harness, and behind it with one, on either network."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.parity.conftest import PATIENCE_S
from wedgehog.harness.network.base import Network
from wedgehog.harness.stdio_proxy.launch import ARGV
from wedgehog.harness.stdio_proxy.session import StdioServer, StdioSession


async def nothing(pipe: StdioSession) -> None:
    """Inject nothing."""


@dataclass
class Watcher:
    """Records the pipes' events."""

    on_open: Callable[[StdioSession], Awaitable[Any]] = nothing
    pipes: list[StdioSession] = field(default_factory=list)
    gone: list[StdioSession] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    async def opened(self, pipe: StdioSession) -> None:
        self.pipes.append(pipe)
        await self.on_open(pipe)

    async def closed(self, pipe: StdioSession) -> None:
        self.gone.append(pipe)

    def trouble(self, what: str) -> None:
        self.troubles.append(what)


@dataclass
class Tool:
    """A command as its agent sees it."""

    process: asyncio.subprocess.Process
    pipe: StdioSession | None

    @property
    def pid(self) -> int:
        """The pid that the agent knows."""
        return self.process.pid

    def write(self, data: bytes) -> None:
        """Write to its stdin, without waiting."""
        self.process.stdin.write(data)

    def end_input(self) -> None:
        """Close its stdin."""
        self.process.stdin.close()

    async def read(self, count: int) -> bytes:
        """Read exactly `size` bytes of its stdout."""
        return await asyncio.wait_for(self.process.stdout.readexactly(count), PATIENCE_S)

    async def line(self) -> str:
        """Read one line of its stdout."""
        return (await asyncio.wait_for(self.process.stdout.readline(), PATIENCE_S)).decode().rstrip("\n")

    async def rest(self) -> bytes:
        """Read its stdout to the end."""
        return await asyncio.wait_for(self.process.stdout.read(), PATIENCE_S)

    async def silent(self, for_s: float = 0.15) -> bool:
        """Whether nothing arrives, not even the end."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.process.stdout.read(1), for_s)
            return False
        return True

    async def exits(self) -> int:
        """Wait for its exit code; asyncio's own `wait` also waits for its pipes."""
        async with asyncio.timeout(PATIENCE_S):
            while self.process.returncode is None:
                await asyncio.sleep(0.002)
        return self.process.returncode

    async def says_all(self, data: bytes = b"") -> tuple[bytes, int]:
        """Write all input; return its output and exit code."""
        out, _ = await asyncio.wait_for(self.process.communicate(data), PATIENCE_S)
        return out, self.process.returncode

    @property
    def command(self) -> psutil.Process:
        """The process of the command itself."""
        return psutil.Process(self.pipe.child if self.pipe else self.pid)


class Rig:
    """Starts commands in one of four ways."""

    def __init__(self, way: str, server: StdioServer | None, watcher: Watcher, home: Path) -> None:
        self.way, self.server, self.watcher, self.home = way, server, watcher, home
        self.started: list[asyncio.subprocess.Process] = []

    @property
    def front(self) -> tuple[str, ...]:
        """The words in front of a command."""
        return () if self.way == "bare" else (*ARGV, "--name", "tool", "--")

    @property
    def env(self) -> dict[str, str]:
        """The environment of a command."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        return env | ({"WEDGEHOG_PIPE": self.server.address} if self.server else {})

    async def start(self, *argv: str, **more: Any) -> Tool:
        """Start one, with its pipe open if it has one."""
        pipe = asyncio.subprocess.PIPE
        usual = {"start_new_session": True, "env": self.env, "limit": 1 << 24, "preexec_fn": _hears_everything}
        options = {"stdin": pipe, "stdout": pipe, **usual} | more
        before = len(self.watcher.pipes)
        process = await asyncio.create_subprocess_exec(*self.front, *argv, **options)
        self.started.append(process)
        if self.server is not None and self.front:
            await self.until(lambda: len(self.watcher.pipes) > before or process.returncode is not None)
        return Tool(process, self.watcher.pipes[before] if len(self.watcher.pipes) > before else None)

    async def python(self, code: str, *arguments: str, **more: Any) -> Tool:
        """Start a small Python program."""
        return await self.start(sys.executable, "-S", "-E", "-c", code, *arguments, **more)

    async def until(self, met: Callable[[], Any], within_s: float = PATIENCE_S) -> Any:
        """Wait until `holds` is true."""
        async with asyncio.timeout(within_s):
            while not (found := met()):
                await asyncio.sleep(0.005)
        return found

    async def close(self) -> None:
        """End the remaining processes and their descendants."""
        for process in self.started:
            family = []
            with contextlib.suppress(psutil.Error):
                family = psutil.Process(process.pid).children(recursive=True)
            for pid in [process.pid, *(it.pid for it in family)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process._transport.close()
            with contextlib.suppress(TimeoutError):
                await self.until(lambda process=process: process.returncode is not None)


@contextlib.asynccontextmanager
async def open_rig(way: str, network: Network | None, home: Path, resets: bool = False) -> AsyncIterator[Rig]:
    """A rig, with a pipe server if there is a network."""
    async with contextlib.AsyncExitStack() as stack:
        watcher, server = Watcher(), None
        if network is not None:
            server = await stack.enter_async_context(StdioServer(network, lambda _: resets, watcher))
        rig = Rig(way, server, watcher, home)
        stack.push_async_callback(rig.close)
        yield rig


@pytest.fixture(params=["bare", "alone", "embedded", "toxiproxy"])
async def rig(request: pytest.FixtureRequest, networks: Any, tmp_path: Path) -> AsyncIterator[Rig]:
    """Four ways to start the same command; no difference may be visible."""
    async with contextlib.AsyncExitStack() as stack:
        behind = request.param in ("embedded", "toxiproxy")
        network = await stack.enter_async_context(networks(request.param)) if behind else None
        rig = await stack.enter_async_context(open_rig(request.param, network, tmp_path))
        yield rig
        assert rig.watcher.troubles == []


@pytest.fixture
def rigs(tmp_path: Path) -> Callable[..., Any]:
    """Opens a rig on a network."""
    return lambda network, resets=False: open_rig("pipe", network, tmp_path, resets)


def _hears_everything() -> None:
    """In the background, these signals are ignored, and processes started here would inherit that."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
