"""The warden: a small process beside us that ends everything of a run when we die, even by SIGKILL.

It holds the read end of a pipe from us. A word on it means an orderly stop; its end without one means that we are gone.

    with Warden("campaign"):
        ...                                # whatever carries WEDGEHOG_RUN=campaign/… does not outlive us
"""

import os
import subprocess
import sys
from contextlib import suppress
from types import TracebackType
from typing import Self

from wedgehog.harness.processes.sweep import RUN_VARIABLE

GOODBYE = b"done"
ON_DUTY = b"on duty"


class Warden:
    """Watches over every process whose mark is `mark` or lies below it."""

    def __init__(self, mark: str) -> None:
        """Start it, and return when it is on duty. Errors: OSError, RuntimeError if it is not."""
        if not mark:
            raise ValueError("a warden without a mark would watch over nothing")
        # An empty mark of its own: it is nobody's orphan, and no sweep takes it.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "wedgehog.harness.processes.watch", mark, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, RUN_VARIABLE: ""},
            start_new_session=True,
        )
        assert self._process.stdout is not None  # noqa: S101  it is a pipe
        with self._process.stdout as said:
            if said.read(len(ON_DUTY)) != ON_DUTY:
                self.stop()
                raise RuntimeError("the warden did not start: processes could be left behind if this one is killed")

    @property
    def pid(self) -> int:
        """Its pid."""
        return self._process.pid

    def stop(self, within_s: float = 5.0) -> None:
        """An orderly end: it leaves quietly and touches nothing. Twice is once."""
        with suppress(OSError, ValueError, subprocess.TimeoutExpired):
            assert self._process.stdin is not None  # noqa: S101  it is a pipe
            with self._process.stdin as pipe:
                pipe.write(GOODBYE)
            self._process.wait(within_s)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        """It is on duty."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """It is dismissed."""
        self.stop()
