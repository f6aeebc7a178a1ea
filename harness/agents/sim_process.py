"""Agents that are programs, in virtual time: the spec's `simulate` function runs on the harness's own event loop.

It gets the arguments that the program would get. A command's function returns the exit code; a service's runs on until
it is cancelled.
"""

import asyncio
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import cast

from wedgehog.harness.agents.base import Outcome, Session, Stimulus
from wedgehog.harness.agents.callables.callable_host import load
from wedgehog.harness.agents.command import CommandSession
from wedgehog.harness.agents.context import AgentContext, Surroundings
from wedgehog.harness.agents.http import HttpSession
from wedgehog.harness.agents.sim_host import PROGRAM_TASK, SimHost
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.sandbox.arrivals import Arrivals
from wedgehog.harness.sandbox.owned import Owned, Tree
from wedgehog.harness.sim.programs import PROGRAM, Program
from wedgehog.harness.sim.tasks import tasks_of


class SimProcess:
    """A program's task, with what a session asks of a process; a signal that it does not handle cancels it."""

    pid: int | None = None

    def __init__(self, target: str, argv: Sequence[str], host: SimHost) -> None:
        """Start `target`, an async function."""
        self._host, self._signal, self._program = host, 0, Program()
        self._task = asyncio.create_task(self._main(target, list(argv)), name=PROGRAM_TASK)

    async def _main(self, target: str, argv: list[str]) -> int:
        PROGRAM.set(self._program)
        try:
            return await self._to_its_end(target, argv)
        finally:
            # As `asyncio.run` does; the commands that it started run on.
            for task in tasks_of(self._program):
                task.cancel()

    async def _to_its_end(self, target: str, argv: list[str]) -> int:
        try:
            return int(await load(target)(argv) or 0)
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 1
        except asyncio.CancelledError:
            raise
        except BaseException:
            traceback.print_exc()
            return 1

    @property
    def exit_code(self) -> int | None:
        """None while it runs; the negative signal number if a signal ended it."""
        if not self._task.done():
            return None
        return -(self._signal or signal.SIGINT) if self._task.cancelled() else self._task.result()

    async def ended(self) -> int:
        """Wait for its end."""
        await asyncio.wait({self._task})
        return cast(int, self.exit_code)

    finished = ended

    def send_signal(self, number: signal.Signals) -> None:
        """Call the program's handler; without one, end it."""
        if number in self._program.handlers and number != signal.SIGKILL:
            asyncio.get_running_loop().call_soon(self._handle, self._program.handlers[number])
            return
        self._signal = number
        self._task.cancel()

    def _handle(self, handler: Callable[[], object]) -> None:
        try:
            handler()
        except (SystemExit, KeyboardInterrupt):  # what a handler raises ends its program, not our loop
            self._task.cancel()

    def kill(self) -> None:
        """End the program."""
        self.send_signal(signal.SIGKILL)

    async def stop(self, number: signal.Signals, grace_s: float) -> None:
        """Send `number`; if it still runs after `grace_s`, end it."""
        self.send_signal(number)
        with suppress(TimeoutError):
            await asyncio.wait_for(self.ended(), grace_s)
        while not self._task.done():
            self.kill()
            await asyncio.wait({self._task}, timeout=0.1)

    def output(self) -> tuple[str, str]:
        """What it printed."""
        return self._host.output()

    def arrived(self) -> tuple[Arrivals, Arrivals]:
        """What it printed to stdout and to stderr, with times."""
        return self._host.out.arrived, self._host.err.arrived

    def forget_output(self) -> None:
        """Drop the output so far."""
        self._host.forget_output()


class SimTree:
    """Starts programs; the counterpart of `sandbox.Tree`."""

    def __init__(self, target: str, host: SimHost) -> None:
        self._target, self._host = target, host
        self._started: list[SimProcess] = []

    async def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        log: Path,
        talks: bool = False,
        terminal: tuple[int, int] | None = None,
    ) -> SimProcess:
        """Start the program: what follows the interpreter and its script in `argv` are its arguments."""
        self._host.forget_output()
        self._started.append(SimProcess(self._target, argv[2:], self._host))
        return self._started[-1]

    async def end(self) -> None:
        """End every program."""
        for process in self._started:
            if process.exit_code is None:
                await process.stop(signal.SIGINT, 1.0)


class _Simulated(Session):
    """What every simulated program shares: its tasks stand in for processes, and nothing here has a process."""

    def __init__(self, spec: AgentSpec, context: AgentContext, around: Surroundings, host: SimHost) -> None:
        self._programs, self._host = SimTree(around.fill(spec.simulate or ""), host), host
        super().__init__(spec, context, around, cast(Tree, self._programs))

    @property
    def leader(self) -> Owned | None:
        """There is no process."""
        return None

    async def say(self, text: str, *, kind: Stimulus = "user", first: bool) -> Outcome:
        """Give the message. Raises AgentError if the program needs what is not simulated."""
        outcome = await super().say(text, kind=kind, first=first)
        self._host.check()
        return outcome

    async def close(self) -> None:
        """End what still runs."""
        await super().close()
        await self._programs.end()


class SimHttpSession(_Simulated, HttpSession):
    """The same requests over simulated TCP."""


class SimCommandSession(_Simulated, CommandSession):
    """One task for each message."""

    def _in_turn(self) -> bool:
        return self._owned is not None and self._owned.exit_code is None

    async def _abort(self) -> None:
        if self._owned is not None:
            self._owned.send_signal(signal.Signals[self._spec.abort])

    async def _stop(self, grace_s: float) -> None:
        if self._owned is not None:
            await self._owned.stop(signal.SIGINT, grace_s)

    def beside(self) -> "SimCommandSession":
        """A second program for the same session; its output counts for both turns."""
        return SimCommandSession(self._spec, self._context, self._around, self._host)
