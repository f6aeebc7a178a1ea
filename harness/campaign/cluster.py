"""Plays a campaign on a Dask cluster: the head plays the control runs, and the workers play all others.

`local:4` starts a cluster of four workers on this machine, on loopback only. An address is that of a scheduler.
Dask gives the runs of a worker that died to another one.
"""

import asyncio
import contextlib
import multiprocessing
import re
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wedgehog.harness.campaign.campaign import Campaign
from wedgehog.harness.campaign.campaign_json import wedgehog_version
from wedgehog.harness.campaign.cluster_worker import (
    RemoteResult,
    RemoteRun,
    close_worker_network,
    play_remote_run,
    unpack,
)
from wedgehog.harness.campaign.common_bound import CommonBound
from wedgehog.harness.campaign.options import Options, Progress
from wedgehog.harness.campaign.places import Places
from wedgehog.harness.campaign.plan import Resumed, cells_of
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.network.base import Network, NetworkError
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.record.judgement import Judgement, write_judgement
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.plugins import absolute

MISSING = "--cluster needs Dask: pip install 'wedgehog[dask]'"
WORKERS_LOST = 5
"""A run whose workers died this often is an error: probably the run itself ends them."""
CONNECT_S = 30.0
CLOSE_S = 20.0


class ClusterError(ValueError):
    """The cluster can't be used; one line."""


class ClusterCampaign(Campaign):
    """A campaign whose runs are played by the workers of a cluster."""

    def __init__(
        self,
        address: str,
        entries: Sequence[Entry],
        options: Options,
        progress: Progress,
        say: Callable[[str], None],
        resumed: Resumed | None = None,
        stored: Callable[[Path], object] = lambda folder: None,
    ) -> None:
        """`address`: `local:N`, or the address of a scheduler. ClusterError: it is neither, or Dask is missing."""
        check_address(address)
        super().__init__(entries, options, progress, say, resumed, stored)
        self._address = address
        self._client: Any = None
        self._planned = {entry.cell: cells_of([entry], self._files)[0] for entry in self._cells}

    @contextlib.asynccontextmanager
    async def _workers(self) -> AsyncIterator[None]:
        """The cluster. The network of the control runs is open already."""
        async with _connected(self._address) as self._client:
            runs = await _threads(self._client)
            self.say(f"cluster {self._client.scheduler.address}: {runs} runs at the same time")
            self._places = Places(runs)
            try:
                yield
            finally:
                with contextlib.suppress(Exception):
                    await asyncio.wait_for(self._client.run(close_worker_network, self.mark), CLOSE_S)

    async def _played(
        self, entry: Entry, control: ControlFacts, common: CommonBound | None, network: Network
    ) -> Judgement:
        if not control.passed or self._skipped(entry, control):
            return await super()._played(entry, control, common, network)
        remote_run = self._remote_run(entry, control, common, network)
        return await asyncio.to_thread(self._unpacked, entry, await self._sent(remote_run))

    def _remote_run(
        self, entry: Entry, control: ControlFacts, common: CommonBound | None, network: Network
    ) -> RemoteRun:
        it = self.options
        return RemoteRun(
            campaign=self.mark,
            version=wedgehog_version(),
            network=network.name,
            world=it.world,
            seed=it.seed,
            plugins=absolute(it.plugins),
            cell=self._planned[entry.cell],
            repeat=entry.repeat,
            control=control,
            common=common,
        )

    async def _sent(self, remote_run: RemoteRun) -> RemoteResult:
        """Let a worker play a run. ClusterError: no worker can play it."""
        future = self._client.submit(play_remote_run, remote_run, pure=False)
        try:
            result: RemoteResult = await future
        except Exception as wrong:
            raise ClusterError(f"cluster: {remote_run.cell.scenario_path}, {remote_run.cell.agent}: {wrong}") from None
        finally:
            future.release()
        if result.wrong:
            raise ClusterError(f"cluster: {result.wrong}")
        return result

    def _unpacked(self, entry: Entry, result: RemoteResult) -> Judgement:
        assert result.judgement is not None  # noqa: S101  a result without one says what is wrong
        folder = self.store.run_folder(entry.file.scenario.name, entry.agent.name, entry.repeat)
        judgement = replace(self._busy.compared(entry, result.judgement), replay=self._replay(folder))
        if folder.exists():
            shutil.rmtree(folder)
        unpack(result.archive, self.store.folder)
        write_judgement(folder, judgement)
        self._stored(folder)
        return judgement


def check_address(address: str) -> None:
    """ClusterError: the address is none, or Dask is missing."""
    if not re.fullmatch(r"local:[1-9]\d*|(tcp|tls|ucx)://\S+:\d+", address):
        raise ClusterError(f"--cluster {address}: expected local:N, or the address of a scheduler: tcp://HOST:PORT")
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise ClusterError(MISSING) from None


@contextlib.asynccontextmanager
async def _connected(address: str) -> AsyncIterator[Any]:
    """The client of the cluster; one that is started here ends with it."""
    import dask
    import distributed

    dask_client: Any = distributed.Client
    local_cluster: Any = distributed.LocalCluster
    with dask.config.set({"distributed.scheduler.allowed-failures": WORKERS_LOST} | _forks()):
        async with contextlib.AsyncExitStack() as stack:
            if address.startswith("local:"):
                cluster = local_cluster(
                    n_workers=int(address.removeprefix("local:")),
                    threads_per_worker=1,
                    host=HOST,
                    dashboard_address=f"{HOST}:0",
                    scheduler_kwargs={"dashboard": False},
                    silence_logs=50,
                    asynchronous=True,
                )
                at: Any = await stack.enter_async_context(cluster)
            else:
                at = address
            try:
                client = await stack.enter_async_context(dask_client(at, asynchronous=True, timeout=CONNECT_S))
            except OSError as wrong:
                raise NetworkError(f"cluster {address}: {wrong}") from None
            yield client


def _forks() -> dict[str, str]:
    """The setting of Dask by which all workers of this machine are forked from one process that has imported us."""
    if sys.platform != "linux":
        return {}
    from distributed import utils

    multiprocessing.get_context("forkserver").set_forkserver_preload(["distributed", play_remote_run.__module__])
    utils._forkserver_preload_set = True  # otherwise Dask adds pandas, which takes a second
    return {"distributed.worker.multiprocessing-method": "forkserver"}


async def _threads(client: Any) -> int:
    """How many runs the workers play at the same time. ClusterError: there is no worker."""
    workers = await client.nthreads()
    if not workers:
        raise ClusterError(f"cluster {client.scheduler.address}: it has no worker")
    return int(sum(workers.values()))
