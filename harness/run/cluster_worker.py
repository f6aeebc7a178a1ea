"""One worker of a cluster: plays the runs that it is sent, and sends back their folders.

    head ── Errand ──▶ worker: own network, own Toxiproxy, own scratch folder ── Parcel ──▶ head: the campaign's folder

The head stores a run only when its parcel has arrived, so a worker that dies in mid run leaves nothing behind.
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
from wedgehog.harness.network.base import NetworkName
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import BODIES
from wedgehog.harness.run.campaign import Campaign
from wedgehog.harness.run.campaign_facts import wedgehog_version
from wedgehog.harness.run.campaign_options import NoProgress, OpenCampaign, Options
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.plan import PlannedCell, World
from wedgehog.harness.run.plugins import load_plugins
from wedgehog.harness.run.selection import Entry
from wedgehog.harness.run.stored import keep_control
from wedgehog.harness.run.yardstick import Yardstick
from wedgehog.harness.sandbox.watchdog_process import WatchdogProcess

JUDGED = "verdicts.json"
_BODY = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Errand:
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
    common: Yardstick | None


@dataclass(frozen=True)
class Parcel:
    """A run that was played: its judgement, and its folder and bodies as a tar archive."""

    judgement: Judgement | None
    archive: bytes = b""
    wrong: str = ""
    """Why it could not be played here, in one line."""


def play_errand(errand: Errand) -> Parcel:
    """Play one run; the function that the head submits."""
    if errand.version != (ours := wedgehog_version()):
        return Parcel(None, wrong=f"Wedgehog {ours} there, {errand.version} here")
    try:
        load_plugins(errand.plugins)
        entry = errand.cell.entry(errand.repeat)
        check_links(errand.campaign, entry.agent)
        return _station(errand).play(entry, errand)
    except BackendError as wrong:
        return Parcel(None, wrong=f"worker {platform.node()}: {wrong}")
    except Exception as wrong:  # (An exception's class may not be importable at the head.)
        return Parcel(None, wrong=f"{type(wrong).__name__}: {wrong}")


def check_links(campaign: str, agent: AgentSpec) -> None:
    """Try the variables and servers of `links` from here, once for each campaign. Errors: BackendError."""
    if (campaign, agent.path) not in _LINKED:
        check_backends([agent])
        _LINKED.add((campaign, agent.path))


def close_station(campaign: str) -> None:
    """Close the network of a campaign."""
    with _LOCK:
        station = _STATIONS.pop(campaign, None)
    if station is not None:
        station.close()


class _StationCampaign(Campaign):
    """Plays single runs, each by the bound of time that the head names."""

    def __init__(self, options: Options) -> None:
        """No run is planned here: the head sends them one by one."""
        super().__init__([], options, NoProgress(), lambda line: None)
        self.bounds: dict[tuple[str, str], Yardstick | None] = {}

    def _common(self, entry: Entry) -> Yardstick | None:
        return self.bounds[entry.file.scenario.name, entry.agent.name]


@dataclass
class _Station:
    """A thread with an event loop, in which the network of one campaign is open."""

    errand: Errand
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    opened: threading.Event = field(default_factory=threading.Event)
    wrong: str = ""

    def start(self) -> None:
        """Open the network. RuntimeError: it does not open."""
        self.thread = threading.Thread(target=self._run, name="wedgehog-station", daemon=True)
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
        it = self.errand
        self.ends = asyncio.Event()
        with tempfile.TemporaryDirectory(prefix="wedgehog-station-", ignore_cleanup_errors=True) as scratch:
            network = "auto" if it.network == "sim" else it.network
            options = Options(Path(scratch), network, 1_000, it.seed, "", it.plugins, it.world)
            self.campaign = _StationCampaign(options)
            with WatchdogProcess(self.campaign.mark, Path(scratch)):
                async with self.campaign.opened([]) as self.world:
                    self.opened.set()
                    await self.ends.wait()

    campaign: _StationCampaign = field(init=False)
    world: OpenCampaign = field(init=False)
    ends: asyncio.Event = field(init=False)
    thread: threading.Thread = field(init=False)

    def play(self, entry: Entry, errand: Errand) -> Parcel:
        """Play one run in the thread of the loop."""
        return self._in_loop(lambda: self._played(entry, errand))

    async def _played(self, entry: Entry, errand: Errand) -> Parcel:
        store, scenario, agent = self.campaign.store, entry.file.scenario.name, entry.agent
        self.campaign.bounds[scenario, agent.name] = errand.common
        control = store.run("control", f"{agent.family}-{agent.name}")
        keep_control(control, errand.control)
        control.close()
        judgement = await self.world.play(entry)
        folder = store.run_folder(scenario, agent.name, entry.repeat)
        return Parcel(judgement, await asyncio.to_thread(pack, folder, store.folder))

    def close(self) -> None:
        """Close the network and wait for it."""
        self.loop.call_soon_threadsafe(self.ends.set)
        self.thread.join()

    def _in_loop(self, work: Callable[[], Coroutine[Any, Any, Parcel]]) -> Parcel:
        return asyncio.run_coroutine_threadsafe(work(), self.loop).result()


_STATIONS: dict[str, _Station] = {}
_LINKED: set[tuple[str, Path]] = set()
"""Campaigns and agents whose links were tried."""
_LOCK = threading.Lock()


def _station(errand: Errand) -> _Station:
    """The open station of a campaign. Those of other campaigns stay open: several heads may use one worker."""
    with _LOCK:
        station = _STATIONS.get(errand.campaign)
        if station is None:
            station = _Station(errand)
            station.start()
            _STATIONS[errand.campaign] = station
        return station


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
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as parcel:
        parcel.extractall(campaign, filter="data")
