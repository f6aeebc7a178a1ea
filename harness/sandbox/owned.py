"""Own the whole process tree of a run, including daemons and processes in sessions of their own.

         Tree "campaign/run"
  ┌─────────┴──────────────┐
leader ── tool             daemon            found by: the leader's group and session · being its descendant ·
  └── shell ── setsid tool                             the mark in the environment · reparented to us
"""

import asyncio
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil

from wedgehog.harness.sandbox.arrivals import Arrivals
from wedgehog.harness.sandbox.capture import Capture
from wedgehog.harness.sandbox.cleanup import RUN_VARIABLE, end_all, lies_below, mark_of, ours_to_end
from wedgehog.harness.sandbox.forked import Process
from wedgehog.harness.sandbox.signals import reap

DRAIN_S = 0.5
"""How long to wait for output after the leader's end: a grandchild may keep the pipe open for hours."""

Fork = Callable[..., Awaitable[Process | None]]
"""Gets the environment, stdout and stderr of a process, and forks it; None: it has to be started."""

_PR_SET_CHILD_SUBREAPER = 36
_open_trees: set["Tree"] = set()


class Owned:
    """One process that we started, the leader of its own process group and session. Made by `Tree.start`."""

    def __init__(self, process: Process, stdout: Capture, stderr: Capture) -> None:
        self._process = process
        self.stdout, self.stderr = stdout, stderr

    @property
    def pid(self) -> int:
        """Its pid, which is also the id of its group and of its session."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; the negative signal number if a signal ended it."""
        return self._process.returncode

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """Its stdin, if it was started with `talks`."""
        assert self._process.stdin is not None  # noqa: S101  the caller started it so
        return self._process.stdin

    async def ended(self) -> int:
        """Wait for its end and return its exit code; its output may still be open."""
        return await self._process.wait()

    async def finished(self, drain_s: float = DRAIN_S) -> int:
        """Wait for its end, then up to `drain_s` for its output, and return its exit code."""
        code = await self.ended()
        await asyncio.gather(self.stdout.drained(drain_s), self.stderr.drained(drain_s))
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to its process group, as a terminal does."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def stop(self, number: signal.Signals, grace_s: float) -> None:
        """Send `number` to the group; if the leader still runs after `grace_s`, SIGKILL the whole tree."""
        known = self.below()
        self.send_signal(number)
        with suppress(TimeoutError):
            await asyncio.wait_for(self.ended(), grace_s)
            return
        self.kill(known)
        await self.ended()

    def below(self) -> list[psutil.Process]:
        """Its living descendants."""
        with suppress(psutil.Error):
            return psutil.Process(self.pid).children(recursive=True)
        return []

    def kill(self, also: Sequence[psutil.Process] = ()) -> None:
        """SIGKILL its descendants, `also`, and its group."""
        for process in {*self.below(), *also}:
            with suppress(psutil.Error):
                process.kill()
        self.send_signal(signal.SIGKILL)

    def output(self) -> tuple[str, str]:
        """Its stdout and stderr until now, as text."""
        self.stdout.read_now()
        self.stderr.read_now()
        return self.stdout.text(), self.stderr.text()

    def arrived(self) -> tuple[Arrivals, Arrivals]:
        """Its stdout and stderr as they were read, with times."""
        return self.stdout.arrived, self.stderr.arrived

    def forget_output(self) -> None:
        """Drop its output until now."""
        self.stdout.forget()
        self.stderr.forget()

    def close(self) -> None:
        """Close both captures."""
        self.stdout.close()
        self.stderr.close()
        if self._process.stdin is not None:
            self._process.stdin.close()


class Tree:
    """Every process of one run: those that we started and their descendants."""

    def __init__(self, mark: str) -> None:
        """`mark` goes into the environment of each process; the watchdog process finds them by it."""
        self.mark = mark
        self._owned: list[Owned] = []
        self._before = _children()
        self._seen: set[psutil.Process] = set()
        self.enter: Callable[[Sequence[str], Path], Sequence[str]] = lambda argv, cwd: argv
        """Wraps a command line so that it runs in the agent's namespaces, if there are any."""
        if sys.platform == "linux":  # orphans become our children instead of init's, so that daemons can be found
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _pass_on_signals(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    async def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        pass_fds: Sequence[int] = (),
        talks: bool = False,
        terminal: tuple[int, int] | None = None,
        fork: Fork | None = None,
    ) -> Owned:
        """Start `argv` with exactly `env` and our mark, its output logged. Errors: OSError, ValueError.

        It has no stdin, or an open pipe if it `talks`; or all three are the second end of a `terminal`.
        If `fork` gives a process, that is it.
        """
        _open_trees.add(self)
        stdout, stderr = Capture(log, terminal), Capture(log)
        stdin = asyncio.subprocess.PIPE if talks else asyncio.subprocess.DEVNULL
        marked = {**env, RUN_VARIABLE: self.mark}
        try:
            process = await fork(marked, stdout.write_end, stderr.write_end) if fork else None
            process = process or await asyncio.create_subprocess_exec(
                *self.enter(argv, cwd),
                env=marked,
                cwd=cwd,
                stdin=terminal[1] if terminal else stdin,
                stdout=stdout.write_end,
                stderr=terminal[1] if terminal else stderr.write_end,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        except BaseException:
            stdout.close()
            stderr.close()
            raise
        stdout.started()
        stderr.started()
        self._owned.append(Owned(process, stdout, stderr))
        return self._owned[-1]

    def members(self) -> list[psutil.Process]:
        """Every living process of this run."""
        below = [process for owned in self._owned for process in owned.below()]
        leaders, adopted = self._leaders, self._adopted()
        around = [process for process in psutil.process_iter() if self._has(process, leaders, adopted)]
        found = [process for process in {*below, *around} if ours_to_end(process)]
        self._seen.update(found)
        return found

    async def end(self, within_s: float = 5.0) -> list[int]:
        """End every process, cancelled or not, and close the captures; return the pids that could not be ended."""
        ending = asyncio.create_task(self._end(within_s))
        cancelled: asyncio.CancelledError | None = None
        while not ending.done():
            try:
                await asyncio.shield(ending)
            except asyncio.CancelledError as stop:
                cancelled = stop
        if cancelled is not None:
            raise cancelled
        return ending.result()

    async def _end(self, within_s: float) -> list[int]:
        try:
            left = await _in_own_thread(lambda: end_all(self.members, threading.Event().wait, within_s))
            for owned in self._owned:
                with suppress(TimeoutError):
                    await asyncio.wait_for(owned.ended(), 1.0)
        finally:
            _open_trees.discard(self)
            for owned in self._owned:
                owned.close()
        reap(self._seen, exclude=self._leaders)
        return left

    @property
    def _leaders(self) -> set[int]:
        return {owned.pid for owned in self._owned}

    def _has(self, process: psutil.Process, leaders: set[int], adopted: set[int]) -> bool:
        mark = mark_of(process)
        if mark is not None:
            return lies_below(mark, self.mark)
        with suppress(OSError):
            return process.pid in adopted or bool({os.getsid(process.pid), os.getpgid(process.pid)} & leaders)
        return False

    def _adopted(self) -> set[int]:
        """Orphans with a session of their own that became our children: claimed only while no other run is open."""
        if _open_trees != {self}:
            return set()
        return set(filter(_has_own_session, _children() - self._leaders - self._before))


def _has_own_session(pid: int) -> bool:
    with suppress(OSError):
        return os.getsid(pid) != os.getsid(0)
    return False


def _children() -> set[int]:
    """Our own children. psutil would look at every process of the machine, and every run asks."""
    listed = [*Path("/proc/self/task").glob("*/children")]
    if not listed:
        return {child.pid for child in psutil.Process().children()}
    found: set[int] = set()
    for path in listed * 2:  # twice, because a child that is reaped while the kernel lists them hides the next one
        with suppress(OSError):  # (the thread has ended)
            found.update(map(int, path.read_text().split()))
    return found


async def _in_own_thread(work: Callable[[], list[int]]) -> list[int]:
    """Run `work` outside the shared thread pool, which may be full of work that waits for these processes."""
    with ThreadPoolExecutor(1, "wedgehog-end") as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, work)


def _pass_on_signals(*numbers: signal.Signals) -> None:
    """Handle ignored signals (under nohup) by doing nothing: unlike SIG_IGN, children do not inherit that."""
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, lambda *_: None)
