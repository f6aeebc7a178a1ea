"""Plays runs in virtual time, each in a fork of one worker process, and reads back their histories."""

import asyncio
import contextlib
import json
import os
import pickle
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO

from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.simulated import why_not_simulated
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.events.run import Trouble
from wedgehog.harness.record.history import History, add_trouble, read
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.run.control import ControlFacts, read_control
from wedgehog.harness.run.job import Job
from wedgehog.harness.run.simulated.shared_packages import SharedPackages
from wedgehog.harness.run.simulated.sim_worker import READY, REAL_LIMIT_S, Served, SimJob
from wedgehog.harness.sandbox.cleanup import RUN_VARIABLE
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.services.beacon import wrapped
from wedgehog.harness.sim.errors import LIVE, SimUnsupportedError
from wedgehog.harness.sim.shell import script_of

LONGEST_LINE = 2**24
"""The longest line of an answer."""
LAST_WORDS = "worker.log in the campaign's folder has what it printed, if anything"
"""Where the output of a process is that ended."""


def why_not_in_virtual_time(scenario: Scenario | None, spec: AgentSpec) -> str:
    """Why this run cannot be simulated; empty if it can. Without a scenario, why the agent can't be."""
    if why := why_not_simulated(spec):
        return why
    if scenario is not None and "sessions" in scenario.needs:
        return f"the scenario has several sessions: {LIVE}"
    real = [what for what in ("processes", "disk") if scenario is not None and what in scenario.needs]
    if real:
        return f"the scenario's faults act on {' and '.join(real)}: {LIVE}"
    return _why_no_command(scenario) if scenario is not None else ""


def _why_no_command(scenario: Scenario) -> str:
    """Which of its commands the simulated shell does not know; empty if it knows all."""
    for command in scenario.commands:
        try:
            script_of(("sh", "-c", wrapped(command, "x1x1x1", Path("trace"))))
        except SimUnsupportedError as unknown:
            return f"a command of the scenario: {unknown}"
    return ""


def in_virtual_time(judgement: Judgement, history: History, real_s: float) -> Judgement:
    """The judgement of a simulated run, with both of its clocks.

    Of a run that an error stopped the virtual one is not known: time may have passed after its last event.
    """
    last = history.events[-1]
    virtual_s = None if isinstance(last, Trouble) else round(last.at_s, 1)
    return replace(judgement, world="sim", virtual_s=virtual_s, real_s=round(real_s, 2))


class SimPlayer:
    """The parent's end of the worker process."""

    def __init__(self, address: Path) -> None:
        self._address = address

    async def play(self, job: Job, folder: Path, bodies: Path) -> tuple[History, ControlFacts | None]:
        """Play one run; its history is that of the folder. If its process ends too early, the history says so."""
        began = time.monotonic()
        async with self.asked(SimJob(job, folder, bodies)) as reader:
            answer = await reader.read()
        if not answer:
            add_trouble(folder / "history.jsonl", _why_ended(time.monotonic() - began))
        facts: ControlFacts | None = pickle.loads(answer) if answer else None  # noqa: S301  our own child wrote it
        history = read(folder / "history.jsonl")
        if job.control is None and facts is None:
            facts = read_control(history, {}, False, None)
        return history, facts

    @contextlib.asynccontextmanager
    async def asked(self, work: Served) -> AsyncIterator[asyncio.StreamReader]:
        """Give `work` to a fork of the worker process; yields its answer."""
        reader, writer = await asyncio.open_unix_connection(str(self._address), limit=LONGEST_LINE)
        try:
            writer.write(pickle.dumps(work))
            yield reader
        finally:
            writer.close()


def _why_ended(took_s: float) -> str:
    if took_s >= REAL_LIMIT_S:
        return f"the simulated run was stopped after {REAL_LIMIT_S} s of real time: the agent did not end or wait"
    return f"the process of the simulated run ended: by the agent's code, or for lack of memory; {LAST_WORDS}"


@contextlib.asynccontextmanager
async def open_sim_player(
    mark: str, log: Path, agents: Sequence[AgentSpec], plugins: Sequence[str] = ()
) -> AsyncIterator[SimPlayer]:
    """Start the worker process; it and its forks carry `mark`, and share packages of `agents`. Errors: AgentError."""
    with tempfile.TemporaryDirectory(prefix="wedgehog-sim-") as folder, log.open("wb") as output:
        address, shared = Path(folder) / "worker", json.dumps(asdict(SharedPackages.of(agents)))
        argv = [sys.executable, "-P", "-m", "wedgehog.harness.run.simulated.sim_start", str(address), shared, *plugins]
        env = {**os.environ, RUN_VARIABLE: f"{mark}/sim", "PYTHONHASHSEED": "0"}
        async with worker_process(argv, env, output) as worker:
            assert worker.stdout is not None  # noqa: S101  it is a pipe
            with contextlib.suppress(asyncio.IncompleteReadError):
                await worker.stdout.readexactly(len(READY))
                yield SimPlayer(address)
                return
            raise AgentError(f"the worker of the simulated world did not start: see {log}")


@contextlib.asynccontextmanager
async def worker_process(
    argv: Sequence[str], env: Mapping[str, str], output: IO[bytes]
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process with a pipe as its stdout. At the end it and its forks are killed: they hold the pipe too."""
    worker = await asyncio.create_subprocess_exec(
        *argv, env=env, stdout=asyncio.subprocess.PIPE, stderr=output, process_group=0
    )
    try:
        yield worker
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
        await worker.wait()
