"""What an agent has of its own in the simulated world, where it shares a process with the harness.

Its environment, its working folder, its import path and its output are in place while the agent is open. Each run has
a process of its own, so modules of one run are not those of another.
"""

import asyncio
import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from unittest import mock

from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.arrivals import Arrivals
from wedgehog.harness.sim.errors import SimUnsupportedError
from wedgehog.harness.sim.loop import SimLoop
from wedgehog.harness.sim.tasks import in_order, waits_for

CALL, PROGRAM_TASK = "the agent's call", "the agent's program"
"""The names of the tasks with which an agent begins."""
OURS = (Path(__file__).parents[1], Path(__file__).parents[2] / "fake_llm")


class Printed(io.TextIOBase):
    """Text that the agent prints; it goes to the log too."""

    def __init__(self, log: Path) -> None:
        self._log, self.arrived = log, Arrivals()

    def write(self, text: str) -> int:
        """Keep the text."""
        self.arrived.add(text.encode("utf-8", "surrogatepass"))
        with self._log.open("a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(text)
        return len(text)

    def writable(self) -> bool:
        """Always true, as `io` asks of a file to print to."""
        return True

    @property
    def text(self) -> str:
        """What was printed since the last `forget`."""
        return self.arrived.data.decode("utf-8", "surrogatepass")

    def forget(self) -> None:
        """Drop the text so far."""
        self.arrived = Arrivals()


class SimHost:
    """The agent's side of a simulated run."""

    def __init__(self, spec: AgentSpec, context: AgentContext, around: Surroundings) -> None:
        self.out, self.err = Printed(context.log), Printed(context.log)
        self._spec, self._context, self._around = spec, context, around

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """The agent's environment, working folder, import path and output."""
        path = [*self._folders(), *sys.path]
        with (
            mock.patch.dict(os.environ, self._around.env, clear=True),
            mock.patch.object(sys, "path", path),
            contextlib.chdir(self._context.cwd),
            contextlib.redirect_stdout(self.out),
            contextlib.redirect_stderr(self.err),
        ):
            yield

    def _folders(self) -> list[str]:
        """Where it imports from: beside its spec, and beside its program, as `python program.py` does."""
        target = self._around.fill(self._spec.simulate or self._spec.callable or "")
        script = (self._spec.here / target.rpartition(":")[0]).resolve()
        return [*([str(script.parent)] if script.suffix == ".py" else []), str(self._spec.here)]

    def output(self) -> tuple[str, str]:
        """Stdout and stderr since the last `forget_output`."""
        return self.out.text, self.err.text

    def forget_output(self) -> None:
        """Drop the output so far."""
        self.out.forget()
        self.err.forget()

    def check(self) -> None:
        """Raise AgentError if the agent did something that is not simulated: whatever followed is no verdict on it."""
        if found := _loop().unsupported:
            raise self.refused(found[0])

    def refused(self, found: SimUnsupportedError) -> AgentError:
        """The error of an agent that needs the live world."""
        return AgentError(f"{self._spec.path}: {found}")


def agent_waits() -> list[str]:
    """What each task of the agent waits for: of those that were not begun by our own code."""
    return [waits_for(task) for task in in_order(_loop()) if _is_the_agents(task)]


def _is_the_agents(task: asyncio.Task[object]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    ours = code is not None and any(code.co_filename.startswith(str(folder)) for folder in OURS)
    return task.get_name() in (CALL, PROGRAM_TASK) or not ours


def _loop() -> SimLoop:
    return cast(SimLoop, asyncio.get_running_loop())
