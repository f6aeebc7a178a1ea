"""Where the runs of a campaign are played: on a network, in real or virtual time; and what these runs share."""

import contextlib
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from wedgehog.harness.agents.callables.warm_hosts import WarmHosts
from wedgehog.harness.agents.missing import check_agents
from wedgehog.harness.agents.pages.users_browser import browser_of_users
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.campaign.options import Options
from wedgehog.harness.network.base import Network
from wedgehog.harness.network.choose import choose_network
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.record.history import History
from wedgehog.harness.record.store import BODIES, CampaignStore, RunStore
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.job import Job
from wedgehog.harness.run.runner import run
from wedgehog.harness.run.simulated.sim_player import SimPlayer, open_sim_player, why_not_in_virtual_time
from wedgehog.harness.run.skip_reasons import why_not_here
from wedgehog.harness.run.watching.connection_watch import ConnectionWatch
from wedgehog.harness.run.watching.cpu_wait import CpuWatch
from wedgehog.harness.sandbox.cleanup import RUN_VARIABLE, carrying, end_all
from wedgehog.harness.sandbox.watchdog_process import WatchdogProcess
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.sim.network import SimNetwork

if TYPE_CHECKING:
    from wedgehog.harness.agents.pages.browser import Browser


class CampaignWorld:
    """The real or the simulated world of one campaign."""

    def __init__(self, options: Options, store: CampaignStore, mark: str, say: Callable[[str], None]) -> None:
        """`mark`: what all its processes carry."""
        self.mark, self.simulates = mark, options.world == "sim"
        self._options, self._store, self._say = options, store, say
        self._cpu, self._connections = CpuWatch(mark), ConnectionWatch()
        self._folder = ""
        """The folder of the agents' folders; the watchdog process removes it if the harness is killed."""
        self.sim: SimPlayer | None = None
        """The worker process of the simulated world."""
        self._warm: WarmHosts | None = None
        self._browser: Callable[[], Browser] | None = None

    @contextlib.asynccontextmanager
    async def opened(self, agents: Sequence[AgentSpec]) -> AsyncIterator[Network]:
        """The network, and a watchdog process over everything that is started meanwhile. Errors: see `check_agents`.

        Without agents the caller chooses them later.
        """
        check_agents(agents)
        if not self._cpu.counts:
            self._say("this system does not tell how long a process waits for a processor: keep the machine quiet")
        with (
            self._store.held(),
            TemporaryDirectory(prefix=f"{self.mark}-", ignore_cleanup_errors=True) as self._folder,
            WatchdogProcess(self.mark, Path(self._folder)),
        ):
            try:
                async with self._cpu, self._network(agents) as network:
                    yield network
            finally:
                # None of our processes may outlive the watchdog process, however the campaign was stopped.
                end_all(lambda: carrying(self.mark), threading.Event().wait)

    @contextlib.asynccontextmanager
    async def _network(self, agents: Sequence[AgentSpec]) -> AsyncIterator[Network]:
        """The campaign's network; in the simulated world each run opens its own, and this one only names it."""
        options, folder = self._options, self._store.folder
        if self.simulates:
            async with open_sim_player(self.mark, folder / "worker.log", agents, options.plugins) as self.sim:
                yield SimNetwork()
        else:
            env = {RUN_VARIABLE: f"{self.mark}/toxiproxy"}
            choosing = choose_network(options.network, self._say, env=env, log=folder / "toxiproxy.log")
            users = browser_of_users(self.mark)
            async with (
                self._connections,
                choosing as network,
                WarmHosts(self.mark) as self._warm,
                users as self._browser,
            ):
                yield network

    def waiting(self) -> float:
        """For which share of the last moments the runs waited for a processor; 1 where that is not known."""
        return self._cpu.share() if self._cpu.counts else 1.0

    def why_not(self, agent: AgentSpec, scenario: Scenario | None = None) -> str:
        """Why the agent, or this scenario with it, cannot be played here, or in this world."""
        return why_not_in_virtual_time(scenario, agent) if self.simulates else why_not_here(agent)

    def job(
        self,
        scenario: Scenario,
        agent: AgentSpec,
        control: ControlFacts | None,
        network: Network,
        *,
        seed: int,
        name: str,
    ) -> Job:
        """One run of this campaign; `name` is part of the mark of its processes."""
        mark = f"{self.mark}/{name}-{secrets.token_hex(3)}"
        return Job(
            scenario,
            agent,
            control,
            seed,
            mark,
            network.name,
            scratch=Path(self._folder),
            words="" if self.simulates else mark,
            browser=self._browser,
            warm=self._warm,
        )

    async def play(self, job: Job, network: Network, store: RunStore) -> tuple[History, ControlFacts | None]:
        """Play one run: its history, and for a control run its facts."""
        if self.sim is None:
            return await run(job, network, store, WallClock(), self._cpu, self._connections)
        return await self.sim.play(job, store.folder, self._store.folder / BODIES)
