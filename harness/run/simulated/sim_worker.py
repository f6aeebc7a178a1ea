"""The process that plays simulated runs, started by `sim_start`. Each run, or each search, gets a fork of it.

A fork has everything imported and its clock frozen, which takes two seconds; and it shares no module with another run.
"""

import gc
import importlib
import json
import os
import pickle
import signal
import socket
import sys
import traceback
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn, Protocol

from wedgehog.harness.record.history import add_trouble
from wedgehog.harness.record.store import RunStore
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.job import Job
from wedgehog.harness.run.plugins import load_plugins
from wedgehog.harness.run.runner import run
from wedgehog.harness.run.simulated.shared_packages import SharedPackages
from wedgehog.harness.sim.clock import SimClock
from wedgehog.harness.sim.errors import SimError
from wedgehog.harness.sim.net import Net
from wedgehog.harness.sim.network import SimNetwork
from wedgehog.harness.sim.world import SimWorld

AGENTS = "wedgehog.harness.agents.callables.sim_callable"
"""Every run needs it, and it takes longer to import than many a run to play: so the worker imports it, once."""
READY = b"ready"
REAL_LIMIT_S = 600
"""A simulated run that takes longer is stopped: it waits for something real."""
CPU_LIMIT_S = 60.0
"""One that computes for longer is stopped too. Most need less than a second of processor time."""


@dataclass(frozen=True)
class SimJob:
    """A run to be simulated, and where its history goes."""

    job: Job
    folder: Path
    bodies: Path
    cpu_limit_s: float = field(default_factory=lambda: CPU_LIMIT_S)

    def serve(self, world: SimWorld, line: socket.socket) -> None:
        """Play it, and answer with the facts of a control run."""
        signal.alarm(REAL_LIMIT_S)
        signal.signal(signal.SIGPROF, lambda *_: self._give_up(line))
        signal.setitimer(signal.ITIMER_PROF, self.cpu_limit_s)
        store = RunStore(self.folder.absolute(), self.bodies.absolute())
        line.sendall(pickle.dumps(play(world, self.job, store)))

    def _give_up(self, line: socket.socket) -> NoReturn:
        """End this process: no virtual time passes while its agent computes, so no bound of it is ever reached."""
        used = f"the simulated run was stopped after {self.cpu_limit_s:g} s of processor time"
        why = f"{used}: the agent computed without waiting (in --world live its turn ends at its bound)"
        add_trouble(self.folder.absolute() / "history.jsonl", why)
        line.sendall(pickle.dumps(None))
        os._exit(0)


class Served(Protocol):
    """What a fork of the worker can be asked for."""

    def serve(self, world: SimWorld, line: socket.socket) -> None:
        """Do it, and answer on the line."""
        ...


def play(world: SimWorld, job: Job, store: RunStore) -> ControlFacts | None:
    """Play one run in virtual time; its history is in the store."""
    net, beside = Net(), job.beside.absolute() if job.beside else None

    async def main() -> ControlFacts | None:
        async with SimNetwork() as network:
            _, facts = await run(replace(job, beside=beside), network, store, SimClock())
            return facts

    try:
        return world.run(main, seed=job.random_seed, net=net)
    except SimError as stopped:
        add_trouble(store.folder / "history.jsonl", f"the simulation stopped: {stopped}")
        return None
    finally:
        if net.refused:
            store.keep_text("refused-hosts.txt", "\n".join(net.refused) + "\n")
        store.close()


def _serve(world: SimWorld, line: socket.socket) -> None:
    with line, line.makefile("rb") as source:
        asked: Served = pickle.load(source)  # noqa: S301  our own parent wrote it
        asked.serve(world, line)


def _fork(world: SimWorld, line: socket.socket) -> None:
    """Play in a child; the kernel reaps it."""
    if os.fork():
        line.close()
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        _serve(world, line)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def main() -> None:
    """Play a run for each connection, until this process is ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    address, shared, *plugins = sys.argv[1:]
    load_plugins(plugins)
    with SimWorld() as world, socket.socket(socket.AF_UNIX) as server:
        SharedPackages(**json.loads(shared)).load(world)
        importlib.import_module(AGENTS)
        gc.freeze()  # what is imported stays; a fork does not look through it
        gc.enable()
        server.bind(address)
        server.listen(64)
        sys.stdout.buffer.write(READY)
        sys.stdout.flush()
        while True:
            line, _ = server.accept()
            _fork(world, line)
