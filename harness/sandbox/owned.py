"""Owning whole process trees: what a leader starts is ours too, also with a session of its own or as a daemon.

         Tree "campaign/run"
  ┌─────────┴──────────────┐
leader ── tool             daemon            found by: the leader's group and session · being below it ·
  └── shell ── setsid tool                             the mark in the environment · having been given to us
"""

import asyncio
import ctypes
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil

from wedgehog.harness.sandbox.capture import Capture
from wedgehog.harness.sandbox.cleanup import RUN_VARIABLE, end_all, lies_below, mark_of, ours_to_end

DRAIN_S = 0.5
"""How long output is waited for after the leader's end: a grandchild may hold the pipe for hours."""

_PR_SET_CHILD_SUBREAPER = 36
_open_trees: set["Tree"] = set()


class Owned:
    """One process that we started, the leader of a group and session of its own. Made by `Tree.start`."""

    def __init__(self, process: asyncio.subprocess.Process, stdout: Capture, stderr: Capture) -> None:
        """`process` has the write ends of both captures."""
        self._process = process
        self.stdout, self.stderr = stdout, stderr

    @property
    def pid(self) -> int:
        """Its pid, which is also its group's and its session's."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number where one ended it."""
        return self._process.returncode

    async def ended(self) -> int:
        """Its exit code, as soon as it has one, whoever still holds its output."""
        return await self._process.wait()

    async def finished(self, drain_s: float = DRAIN_S) -> int:
        """Its exit code, once its output has been read too, for which `drain_s` must do."""
        code = await self.ended()
        await asyncio.gather(self.stdout.drained(drain_s), self.stderr.drained(drain_s))
        return code

    def tell(self, number: signal.Signals) -> None:
        """To its whole group, as a terminal does it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def stop(self, number: signal.Signals, grace_s: float) -> None:
        """`number` to the group, and if the leader is still there after `grace_s`, SIGKILL to all below it."""
        known = self.below()
        self.tell(number)
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
        """SIGKILL to its descendants, `also`, and its group; at once."""
        for process in {*self.below(), *also}:
            with suppress(psutil.Error):
                process.kill()
        self.tell(signal.SIGKILL)

    def close(self) -> None:
        """Stop listening to it."""
        self.stdout.close()
        self.stderr.close()


class Tree:
    """Every process of one run: those that we started and all that came of them."""

    def __init__(self, mark: str) -> None:
        """`mark` goes into each one's environment, by which also the warden knows them."""
        self.mark = mark
        self._owned: list[Owned] = []
        self._before = {child.pid for child in psutil.Process().children()}
        self._seen: set[int] = set()
        self.enter: Callable[[Sequence[str], Path], Sequence[str]] = lambda argv, cwd: argv
        """What to start so that it becomes a command line in a folder: where there is a disk to be started on."""
        _open_trees.add(self)
        _adopt_orphans()
        _let_children_hear(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    async def start(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path, pass_fds: Sequence[int] = ()
    ) -> Owned:
        """Start `argv` with exactly `env` and our mark, stdin closed, its output kept and logged.

        Errors: OSError, ValueError (an argument that no process can take).
        """
        stdout, stderr = Capture(log), Capture(log)
        try:
            process = await asyncio.create_subprocess_exec(
                *self.enter(argv, cwd),
                env={**env, RUN_VARIABLE: self.mark},
                cwd=cwd,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stdout.write_end,
                stderr=stderr.write_end,
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
        """Every process of this run that can be found now."""
        below = [process for owned in self._owned for process in owned.below()]
        around = [process for process in psutil.process_iter() if self._has(process)]
        found = [process for process in {*below, *around} if ours_to_end(process)]
        self._seen |= {process.pid for process in found}
        return found

    async def end(self, within_s: float = 5.0) -> list[int]:
        """End them all, at once; the pids that could not be ended. Nothing is listened to afterwards.

        A cancellation waits until it is done: it is when a run is stopped that its processes must not be left.
        """
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
            left = await _in_a_thread_of_its_own(lambda: end_all(self.members, threading.Event().wait, within_s))
            for owned in self._owned:
                with suppress(TimeoutError):
                    await asyncio.wait_for(owned.ended(), 1.0)
        finally:
            _open_trees.discard(self)
            for owned in self._owned:
                owned.close()
        self._bury()
        return left

    @property
    def _leaders(self) -> set[int]:
        return {owned.pid for owned in self._owned}

    def _has(self, process: psutil.Process) -> bool:
        mark = mark_of(process)
        if mark is not None:
            return lies_below(mark, self.mark)
        with suppress(OSError):
            return bool({os.getsid(process.pid), os.getpgid(process.pid)} & self._leaders) or self._was_given(process)
        return False

    def _was_given(self, process: psutil.Process) -> bool:
        """Whether it is an orphan with a washed environment and a session of its own: no child of ours is that.

        Such a one could be any open run's; with several in this process it is left to the last of them.
        """
        with suppress(psutil.Error):
            return (
                _open_trees == {self}
                and process.ppid() == os.getpid()
                and process.pid not in self._leaders | self._before
                and os.getsid(process.pid) != os.getsid(0)
            )
        return False

    def _bury(self) -> None:
        """Orphans that were given to us are ours to wait for, else they stay zombies until we end."""
        for pid in self._seen - self._leaders:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


async def _in_a_thread_of_its_own(work: Callable[[], list[int]]) -> list[int]:
    """The shared pool may be full of work that waits for what we are about to end."""
    with ThreadPoolExecutor(1, "wedgehog-end") as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, work)


def _adopt_orphans() -> None:
    """On Linux, what loses its parent becomes our child instead of init's, so that no daemon gets out of sight."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _let_children_hear(*numbers: signal.Signals) -> None:
    """Where we were started to ignore a signal (in the background, under nohup), children would ignore it too.

    A handler that does nothing ignores it just as well, but is not inherited.
    """
    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if signal.getsignal(number) is signal.SIG_IGN:
                signal.signal(number, lambda *_: None)
