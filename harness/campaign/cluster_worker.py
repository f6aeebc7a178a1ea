"""One worker of a cluster: plays the runs that it is sent, and sends back their folders.

    head ── RemoteRun ──▶ worker: own network, own Toxiproxy, own folder ── RemoteResult ──▶ head: the campaign's folder

The head stores a run when its result has arrived. A worker that dies during a run leaves nothing behind.
"""

import asyncio
import io
import platform
import re
import tarfile
import tempfile
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wedgehog.harness.agents.backend_links import BackendError, check_backends
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.campaign.campaign import Campaign
from wedgehog.harness.campaign.campaign_json import wedgehog_version
from wedgehog.harness.campaign.common_bound import CommonBound
from wedgehog.harness.campaign.options import NoProgress, OpenCampaign, Options
from wedgehog.harness.campaign.plan import PlannedCell, World
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.campaign.stored import keep_control
from wedgehog.harness.network.base import Network, NetworkName
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import BODIES
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.plugins import load_plugins
from wedgehog.harness.sandbox.watchdog_process import WatchdogProcess

JUDGED = "verdicts.json"
_BODY = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class RemoteRun:
    """One run to be played by a worker."""

    campaign: str
    """The mark of the head's campaign: its runs share one network of the worker."""
    version: str
    network: NetworkName
    world: World
    seed: int
    plugins: tuple[str, ...]
    cell: PlannedCell
    repeat: int
    control: ControlFacts
    common: CommonBound | None


@dataclass(frozen=True)
class RemoteResult:
    """A run that was played: its judgement, and its folder and bodies as a tar archive."""

    judgement: Judgement | None
    archive: bytes = b""
    wrong: str = ""
    """Why it could not be played here, in one line."""


def play_remote_run(remote_run: RemoteRun) -> RemoteResult:
    """Play one run; the function that the head submits."""
    if remote_run.version != (ours := wedgehog_version()):
        return RemoteResult(None, wrong=f"Wedgehog {ours} there, {remote_run.version} here")
    try:
        load_plugins(remote_run.plugins)
        entry = remote_run.cell.entry(remote_run.repeat)
        check_links(remote_run.campaign, entry.agent)
        return _worker_network(remote_run).play(entry, remote_run)
    except BackendError as wrong:
        return RemoteResult(None, wrong=f"worker {platform.node()}: {wrong}")
    except Exception as wrong:  # (An exception's class may not be importable at the head.)
        return RemoteResult(None, wrong=f"{type(wrong).__name__}: {wrong}")


def check_links(campaign: str, agent: AgentSpec) -> None:
    """Try the variables and servers of `links` from here, once for each campaign. Errors: BackendError."""
    if (campaign, agent.path) not in _LINKED:
        check_backends([agent])
        _LINKED.add((campaign, agent.path))


def close_worker_network(campaign: str) -> None:
    """Close the network of a campaign."""
    with _LOCK:
        worker_network = _NETWORKS.pop(campaign, None)
    if worker_network is not None:
        worker_network.close()


class _WorkerCampaign(Campaign):
    """Plays single runs, each by the bound of time that the head names."""

    def __init__(self, options: Options) -> None:
        """No run is planned here: the head sends them one by one."""
        super().__init__([], options, NoProgress(), lambda line: None)
        self.bounds: dict[tuple[str, str], CommonBound | None] = {}

    async def _common(self, entry: Entry, network: Network) -> CommonBound | None:
        return self.bounds[entry.file.scenario.name, entry.agent.name]


@dataclass
class _WorkerNetwork:
    """A thread with an event loop, in which the network of one campaign is open."""

    remote_run: RemoteRun
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    opened: threading.Event = field(default_factory=threading.Event)
    wrong: str = ""

    def start(self) -> None:
        """Open the network. RuntimeError: it does not open."""
        self.thread = threading.Thread(target=self._run, name="wedgehog-worker", daemon=True)
        self.thread.start()
        self.opened.wait()
        if self.wrong:
            raise RuntimeError(self.wrong)

    def _run(self) -> None:
        try:
            self.loop.run_until_complete(self._open())
        except Exception as wrong:
            self.wrong = str(wrong)
        finally:
            self.opened.set()
            self.loop.close()

    async def _open(self) -> None:
        it = self.remote_run
        self.ends = asyncio.Event()
        with tempfile.TemporaryDirectory(prefix="wedgehog-worker-", ignore_cleanup_errors=True) as scratch:
            network = "auto" if it.network == "sim" else it.network
            options = Options(Path(scratch), network, 1_000, it.seed, "", it.plugins, it.world)
            self.campaign = _WorkerCampaign(options)
            with WatchdogProcess(self.campaign.mark, Path(scratch)):
                async with self.campaign.opened([]) as self.world:
                    self.opened.set()
                    await self.ends.wait()

    campaign: _WorkerCampaign = field(init=False)
    world: OpenCampaign = field(init=False)
    ends: asyncio.Event = field(init=False)
    thread: threading.Thread = field(init=False)

    def play(self, entry: Entry, remote_run: RemoteRun) -> RemoteResult:
        """Play one run in the thread of the loop."""
        return self._in_loop(lambda: self._played(entry, remote_run))

    async def _played(self, entry: Entry, remote_run: RemoteRun) -> RemoteResult:
        store, scenario, agent = self.campaign.store, entry.file.scenario.name, entry.agent
        self.campaign.bounds[scenario, agent.name] = remote_run.common
        control = store.run("control", f"{agent.family}-{agent.name}")
        keep_control(control, remote_run.control)
        control.close()
        judgement = await self.world.play(entry)
        folder = store.run_folder(scenario, agent.name, entry.repeat)
        return RemoteResult(judgement, await asyncio.to_thread(pack, folder, store.folder))

    def close(self) -> None:
        """Close the network and wait for it."""
        self.loop.call_soon_threadsafe(self.ends.set)
        self.thread.join()

    def _in_loop(self, work: Callable[[], Coroutine[Any, Any, RemoteResult]]) -> RemoteResult:
        return asyncio.run_coroutine_threadsafe(work(), self.loop).result()


_NETWORKS: dict[str, _WorkerNetwork] = {}
_LINKED: set[tuple[str, Path]] = set()
"""Campaigns and agents whose links were tried."""
_LOCK = threading.Lock()


def _worker_network(remote_run: RemoteRun) -> _WorkerNetwork:
    """The open network of a campaign. Those of other campaigns stay open: several heads may use one worker."""
    with _LOCK:
        worker_network = _NETWORKS.get(remote_run.campaign)
        if worker_network is None:
            worker_network = _WorkerNetwork(remote_run)
            worker_network.start()
            _NETWORKS[remote_run.campaign] = worker_network
        return worker_network


def pack(folder: Path, campaign: Path) -> bytes:
    """A run's folder without its judgement, and the bodies that its history names."""
    named = set(_BODY.findall((folder / "history.jsonl").read_text(encoding="utf-8", errors="replace")))
    kept = [path for path in sorted(folder.rglob("*")) if path.name != JUDGED or path.parent != folder]
    kept += [body for name in sorted(named) if (body := campaign / BODIES / name).is_file()]
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=1) as archive:
        for path in kept:
            archive.add(path, str(path.relative_to(campaign)), recursive=False)
    return target.getvalue()


def unpack(archive: bytes, campaign: Path) -> None:
    """Put a run into the campaign's folder. It is finished when its judgement is written beside it."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as result:
        result.extractall(campaign, filter="data")
