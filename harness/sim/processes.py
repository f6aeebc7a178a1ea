"""Child processes in virtual time: `asyncio.create_subprocess_exec` and `_shell` for commands that the shell simulates.

A process has a pid that no real process has. It can be waited for, read, signalled and killed, alone or by its group.
"""

import asyncio
import contextlib
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextvars import Context
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from wedgehog.harness.sim.errors import SimUnsupportedError
from wedgehog.harness.sim.guard import MakesError
from wedgehog.harness.sim.shell import FAILED, Shell, ShellWorld, script_of
from wedgehog.harness.sim.shell_syntax import CommandList

FIRST_PID = 1 << 23
"""Twice the largest pid of Linux."""
_IGNORED = {signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH}
_OPTIONS = {"cwd", "env", "start_new_session", "process_group", "limit", "bufsize", "universal_newlines", "shell"}
"""Options of Popen that mean something here, or nothing anywhere."""


class _ReadPipe(asyncio.ReadTransport):
    """The reader's end of a pipe: flow control has no effect, because a command's output is small."""

    def pause_reading(self) -> None:
        """No effect."""

    def resume_reading(self) -> None:
        """No effect."""

    def close(self) -> None:
        """No effect."""


class _WritePipe(asyncio.WriteTransport):
    """Stdin of a command, which reads nothing."""

    def write(self, data: Any) -> None:
        """Drop the data: the command reads nothing."""

    def close(self) -> None:
        """No effect."""

    abort = close

    def is_closing(self) -> bool:
        """It stays open."""
        return False


class SimChild(asyncio.SubprocessTransport):
    """One process: the shell that runs a script."""

    def __init__(
        self, table: "ProcessTable", pid: int, group: int, protocol: asyncio.SubprocessProtocol, fds: Sequence[Any]
    ) -> None:
        """`fds` are stdin, stdout and stderr as Popen takes them."""
        super().__init__()
        self.pid, self.group, self._table, self._protocol = pid, group, table, protocol
        self._fds = list(fds)
        self._code: int | None = None
        self._over = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[int] | None = None
        self._background: dict[asyncio.Task[int], None] = {}
        """What the script started with `&`; it holds the pipes open."""

    def start(self, script: CommandList, cwd: Path, variables: dict[str, str]) -> None:
        """Run the script."""
        self._protocol.connection_made(self)
        world = ShellWorld(
            partial(self._print, 1), partial(self._print, 2), cwd, self._table.wrote, self._spawn, self._table.stretch
        )
        self._task = self._run(Shell(world, variables).run(script))
        self._task.add_done_callback(self._ended)

    def _run(self, work: Coroutine[Any, Any, int]) -> "asyncio.Task[int]":
        # In no program's context: a process does not end with the one that started it.
        return Context().run(asyncio.get_running_loop().create_task, work, name=f"process {self.pid}")

    def _spawn(self, work: Coroutine[Any, Any, int]) -> None:
        task = self._run(work)
        self._background[task] = None
        task.add_done_callback(self._background_ended)

    def _background_ended(self, task: "asyncio.Task[int]") -> None:
        del self._background[task]
        if not task.cancelled() and (error := task.exception()) and isinstance(error, SimUnsupportedError):
            self._table.refuse(error.what)
        self._close_pipes()

    def _print(self, fd: int, data: bytes) -> None:
        where = 1 if fd == 2 and self._fds[2] == asyncio.subprocess.STDOUT else fd
        if self._fds[where] == asyncio.subprocess.PIPE:
            self._protocol.pipe_data_received(where, data)
        elif self._fds[where] is None:
            (sys.stdout, sys.stderr)[where - 1].write(data.decode(errors="replace"))

    def _ended(self, task: "asyncio.Task[int]") -> None:
        if self._code is None:
            error = None if task.cancelled() else task.exception()
            if isinstance(error, SimUnsupportedError):
                self._table.refuse(error.what)
            self._end(-signal.SIGKILL if task.cancelled() else FAILED if error else task.result())

    def _end(self, code: int) -> None:
        self._code = code
        self._protocol.process_exited()
        if not self._over.done():
            self._over.set_result(code)
        self._close_pipes()

    def _close_pipes(self) -> None:
        """Once the shell has ended, and all that holds its output."""
        if self._code is None or self._background:
            return
        for fd in (1, 2):
            if self._fds[fd] == asyncio.subprocess.PIPE:
                self._protocol.pipe_connection_lost(fd, None)
        self._protocol.connection_lost(None)

    # ---- what asyncio asks

    def get_pid(self) -> int:
        """No real process has it."""
        return self.pid

    def get_returncode(self) -> int | None:
        """None while it runs; the negative signal number if a signal ended it."""
        return self._code

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport | None:
        """A pipe, if one was asked for."""
        if self._fds[fd] != asyncio.subprocess.PIPE:
            return None
        return _ReadPipe() if fd else _WritePipe()

    async def _wait(self) -> int:
        return int(await asyncio.shield(self._over))

    def send_signal(self, signal: int) -> None:
        """End it: a shell that waits for a command has no handlers. Raises ProcessLookupError if it has ended."""
        if self._code is not None:
            raise ProcessLookupError
        if signal and signal not in _IGNORED:
            assert self._task is not None  # noqa: S101  it has started
            self._end(-signal)
            self._task.cancel()

    @property
    def runs(self) -> bool:
        """Whether anything of it runs: the shell, or what it left in the background."""
        return self._code is None or bool(self._background)

    def signal_all(self, number: int) -> None:
        """Send it to the shell and to what it left in the background."""
        if self._code is None:
            self.send_signal(number)
        for task in self._background if number and number not in _IGNORED else ():
            task.cancel()

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """End it, as asyncio does when its owner forgets it."""
        with contextlib.suppress(ProcessLookupError):
            self.kill()

    def is_closing(self) -> bool:
        """Whether it has ended."""
        return self._code is not None


class ProcessTable:
    """The processes of one simulated world."""

    def __init__(self, refuse: MakesError) -> None:
        """`refuse` notes what is not simulated, and returns its error."""
        self.refuse = refuse
        self.wrote: Callable[[], None] = lambda: None
        """Called when a command has written to a file."""
        self.stretch = 1.0
        """How many virtual seconds a second of a command takes: a time scale shortens the agent's timers only."""
        self._children: dict[int, SimChild] = {}
        self._pids = itertools.count(FIRST_PID)

    def start(
        self, protocol: asyncio.SubprocessProtocol, argv: Sequence[str], fds: Sequence[Any], options: dict[str, Any]
    ) -> SimChild:
        """Start a process. Raises SimUnsupportedError for what is not simulated."""
        try:
            script = script_of(argv)
        except SimUnsupportedError as unknown:
            raise self.refuse(f"a child process, {unknown.what},") from None
        self._check(fds, options)
        pid = next(self._pids)
        alone = options.get("start_new_session") or options.get("process_group") == 0
        child = self._children[pid] = SimChild(self, pid, pid if alone else 0, protocol, fds)
        child.start(script, Path(options.get("cwd") or Path.cwd()), dict(options.get("env") or os.environ))
        return child

    def _check(self, fds: Sequence[Any], options: dict[str, Any]) -> None:
        if odd := [name for name, value in options.items() if value and name not in _OPTIONS]:
            raise self.refuse(f"a child process with {odd[0]}")
        if any(not isinstance(fd, int | None) or (fd is not None and fd >= 0) for fd in fds):
            raise self.refuse("a child process that writes to a file of its parent")

    def signal(self, pid: int, number: int) -> None:
        """`os.kill`; a group is a negative pid. Raises ProcessLookupError if it has ended."""
        if pid < 0:
            hit = [child for child in self._children.values() if child.group == -pid and child.runs]
        else:
            hit = [self._children[pid]] if pid in self._children else []
        if not hit and abs(pid) < FIRST_PID:
            raise self.refuse("a signal to a real process")
        if not hit:
            raise ProcessLookupError
        for child in hit:
            child.signal_all(number) if pid < 0 else child.send_signal(number)


@contextlib.contextmanager
def simulated_signals(table: ProcessTable) -> Iterator[None]:
    """Let `os.kill` and `os.killpg` of this thread reach the processes of the table, and no others."""
    me, kill, killpg = threading.get_ident(), os.kill, os.killpg

    def on_kill(pid: int, number: int) -> None:
        table.signal(pid, number) if threading.get_ident() == me else kill(pid, number)

    def on_killpg(group: int, number: int) -> None:
        table.signal(-group, number) if threading.get_ident() == me else killpg(group, number)

    with mock.patch.object(os, "kill", on_kill), mock.patch.object(os, "killpg", on_killpg):
        yield
