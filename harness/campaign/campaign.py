"""Plays agents x scenarios x repeats: first each agent's control run, then its runs, several at a time."""

import asyncio
import contextlib
import secrets
import shlex
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from wedgehog.harness.agents.base import AgentError
from wedgehog.harness.agents.programs import edited_programs, programs_of
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.campaign.busy_machine import BusyMachine
from wedgehog.harness.campaign.campaign_files import CampaignFiles
from wedgehog.harness.campaign.campaign_json import of_all_runs, of_scenarios, wedgehog_version
from wedgehog.harness.campaign.common_bound import CommonBound, common_bound_of
from wedgehog.harness.campaign.exit_code import FAILED, exit_code
from wedgehog.harness.campaign.options import FirstFailureError, OpenCampaign, Options, Progress
from wedgehog.harness.campaign.places import Places
from wedgehog.harness.campaign.plan import Plan, Resumed, ResumeError, cells_of, key
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.campaign.stored import keep_control, keep_inputs, kept_control
from wedgehog.harness.campaign.world import CampaignWorld
from wedgehog.harness.network.base import Network
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import CampaignStore, RunStore
from wedgehog.harness.run.control import ControlFacts, control_scenario
from wedgehog.harness.run.judging.judge import judge
from wedgehog.harness.run.judging.unplayed import unplayed
from wedgehog.harness.run.playable_part import FIRST_TURN_ONLY, as_far_as
from wedgehog.harness.run.plugins import absolute, hashed, plugin_words
from wedgehog.harness.run.simulated.sim_player import in_virtual_time
from wedgehog.harness.run.skip_reasons import why_skipped


class Campaign:
    """One campaign: opens the network, plays every entry, writes every judgement."""

    def __init__(
        self,
        entries: Sequence[Entry],
        options: Options,
        progress: Progress,
        say: Callable[[str], None],
        resumed: Resumed | None = None,
        stored: Callable[[Path], object] = lambda folder: None,
    ) -> None:
        """`say` gets single lines for the user (which network, what was fetched); `resumed`: go on in its folder.

        `stored` gets, in a thread, the folder of each run that was judged.
        """
        self.entries, self.options, self.progress, self.say = entries, options, progress, say
        self._stored, self._files = stored, CampaignFiles.of(entries)
        self.mark = f"wedgehog-{secrets.token_hex(4)}"
        self._resumed = resumed
        self.store = resumed.store if resumed else CampaignStore(options.out, WallClock().wall(), self.mark[-4:])
        self._world = CampaignWorld(options, self.store, self.mark, say)
        self._finished = dict(resumed.finished) if resumed else {}
        self.judgements: list[Judgement] = list(self._finished.values())
        self._cells = list({entry.cell: entry for entry in entries}.values())
        self._of_file: dict[Path, list[Entry]] = {}
        for cell in self._cells:
            self._of_file.setdefault(cell.file.path, []).append(cell)
        self._programs: Mapping[str, str] = {}
        self._edited: set[str] = set()
        self._controls: dict[tuple[Path, str], asyncio.Task[ControlFacts]] = {}
        self._busy = BusyMachine(options, say)
        self._places = Places(options.jobs + options.beside, options.most_jobs, self._world.waiting)

    async def play(self) -> list[Judgement]:
        """Play everything; finished runs are in the store, also after a cancellation. NoServerError: no Toxiproxy."""
        async with self._open([entry.agent for entry in self.entries]) as network:
            # Scenarios tagged `slow` begin first, so that none of them runs alone at the end.
            finished = [entry for entry in self.entries if key(entry) in self._finished]
            left = [entry for entry in self.entries if key(entry) not in self._finished]
            entries = sorted(left, key=lambda entry: "slow" not in entry.scenario.tags)
            runs = [asyncio.create_task(self._entry(entry, network)) for entry in entries]
            try:
                found = [*zip(entries, await asyncio.gather(*runs), strict=True)]
                found += [(entry, self._finished[key(entry)]) for entry in finished]
                await self._again(self._busy.again(found), network)
            except FirstFailureError as first:
                self.say(f"stopped at the first failure: {first}")
            finally:
                await _end(runs + list(self._controls.values()))
        return self.judgements

    @contextlib.asynccontextmanager
    async def opened(self, agents: Sequence[AgentSpec]) -> AsyncIterator["OpenCampaign"]:
        """Open the network for entries that the caller chooses one by one. Errors as `play`."""
        async with self._open(agents) as network:
            try:
                yield OpenCampaign(
                    lambda entry: self._entry(entry, network),
                    lambda agent: self._control(agent, network),
                    self._world.sim,
                )
            finally:
                await _end(list(self._controls.values()))

    async def _again(self, in_doubt: Sequence[tuple[Entry, Judgement]], network: Network) -> None:
        """Play the doubtful runs of a busy machine once more, one at a time; the second result counts, if it comes."""
        for entry, first in in_doubt:
            before = len(self.judgements)
            with self.store.replaced(*key(entry)):
                try:
                    await self._entry(entry, network)
                finally:
                    if len(self.judgements) > before:
                        self.judgements.remove(first)

    @contextlib.asynccontextmanager
    async def _open(self, agents: Sequence[AgentSpec]) -> AsyncIterator[Network]:
        """The network, once campaign.json is written. Errors: see `check_agents`."""
        async with self._world.opened(agents) as network, self._workers():
            self._describe(network)
            yield network

    def _workers(self) -> contextlib.AbstractAsyncContextManager[object]:
        """Open what plays the runs, if this process does not."""
        return contextlib.nullcontext()

    async def _entry(self, entry: Entry, network: Network) -> Judgement:
        control = await asyncio.shield(self._control(entry.agent, network))
        common = await self._common(entry, network)
        async with self._places.one():
            what = f"{entry.file.scenario.name} x {entry.agent.name}"
            judgement = None
            self.progress.begins(what)
            try:
                judgement = await self._played(entry, control, common, network)
            finally:
                self.progress.ended(what, judgement)
            self.judgements.append(judgement)
            await self._note_edits(entry)
        if self.options.fail_fast and exit_code([judgement]) == FAILED and not self._busy.plays_again(entry, judgement):
            raise FirstFailureError(what)
        return judgement

    async def _note_edits(self, entry: Entry) -> None:
        """Name in campaign.json the programs of a run that were edited since the campaign began."""
        if self.entries:
            history = self.store.run_folder(*key(entry)) / "history.jsonl"
            with contextlib.suppress(AgentError):  # the Python of a callable is gone
                found = await asyncio.to_thread(edited_programs, entry.agent, history, self._programs)
                edited = [file for file in found if file not in self._edited]
                self._edited.update(edited)
                if edited:
                    self.store.add_to_description("edited", *edited)

    async def _played(
        self, entry: Entry, control: ControlFacts, common: CommonBound | None, network: Network
    ) -> Judgement:
        """Play a run into its folder."""
        store = self.store.run(entry.file.scenario.name, entry.agent.name, entry.repeat)
        judgement = None
        try:
            judgement = await self._judged(entry, control, common, network, store)
        finally:
            store.close(judgement)
        await asyncio.to_thread(self._stored, store.folder)
        return judgement

    async def _judged(
        self, entry: Entry, control: ControlFacts, common: CommonBound | None, network: Network, store: RunStore
    ) -> Judgement:
        scenario, agent = as_far_as(entry.scenario, entry.agent, control), entry.agent
        seed = self.options.seed + entry.repeat - 1
        keep_inputs(store, entry, control, seed, self._files, common)
        skipped = self._skipped(entry, control)
        if not control.passed or skipped:
            failed = "" if control.passed else f"{control.says}{_output(self._control_folder(agent))}"
            judgement = unplayed(entry.scenario, agent, network.name, skipped=skipped, failed=failed)
        else:
            job = self._world.job(scenario, agent, control, network, seed=seed, name=str(len(self.judgements)))
            job = replace(job, beside=entry.file.path.parent, until_certain=self.options.until_certain)
            began = time.perf_counter()
            if common is not None:
                job = replace(job, scenario=common.scenario(scenario, job.time_scale), agent=common.agent(agent))
            history, _ = await self._world.play(job, network, store)
            took_s = time.perf_counter() - began
            # In a thread: a long history takes seconds, and other runs' time bounds would stretch by them.
            judgement = await asyncio.to_thread(judge, history, job.scenario, job.agent, control)
            if common is not None:
                judgement = common.beside(judgement, history, scenario, agent)
            if len(scenario.turns) < len(entry.scenario.turns):
                judgement = replace(judgement, remarks=(*judgement.remarks, FIRST_TURN_ONLY))
            judgement = in_virtual_time(judgement, history, took_s) if self._world.simulates else judgement
        return replace(
            self._busy.compared(entry, judgement),
            world=self.options.world,
            repeat=entry.repeat,
            matrix_only=entry.matrix_only,
            replay=self._replay(store.folder),
        )

    async def _common(self, entry: Entry, network: Network) -> CommonBound | None:
        """The bound of time of all agents that are compared. One that skips the scenario is not."""
        beside = self._of_file.get(entry.file.path, [])
        if common_bound_of(entry, beside, self.options.turn_s) is None:
            return None
        controls = [(it, await asyncio.shield(self._control(it.agent, network))) for it in beside]
        playing = [it for it, control in controls if not self._skipped(it, control)]
        return common_bound_of(entry, playing, self.options.turn_s)

    def _skipped(self, entry: Entry, control: ControlFacts) -> str:
        """Why a run is not played; empty if it is."""
        scenario = as_far_as(entry.scenario, entry.agent, control)
        why_not = self._world.why_not(entry.agent, scenario)
        return why_not or (why_skipped(scenario, entry.agent, control) if control.passed else "")

    def _replay(self, folder: Path) -> str:
        world = ["--world", "sim"] if self._world.simulates else []
        return shlex.join(["wedgehog", "replay", str(folder), *world, *plugin_words(self.options.plugins)])

    def _control(self, agent: AgentSpec, network: Network) -> "asyncio.Task[ControlFacts]":
        key = (agent.path, agent.name)
        if key not in self._controls:
            self._controls[key] = asyncio.create_task(self._play_control(agent, network))
        return self._controls[key]

    def _control_folder(self, agent: AgentSpec) -> Path:
        return self.store.run_folder(*_of_control(agent))

    async def _play_control(self, agent: AgentSpec, network: Network) -> ControlFacts:
        if why := self._world.why_not(agent):
            return ControlFacts(False, why)
        if known := kept_control(self._control_folder(agent)):
            return known
        async with self._places.one():
            what = f"control x {agent.name}"
            self.progress.begins(what)
            store = self.store.run(*_of_control(agent))
            try:
                job = self._world.job(control_scenario(), agent, None, network, seed=self.options.seed, name="control")
                history, facts = await self._world.play(job, network, store)
                assert facts is not None  # noqa: S101  a control run always has facts
                keep_control(store, facts)
            finally:
                store.close()
                self.progress.ended(what, None)
            self._busy.tell_of(what, history)
            return facts

    def _describe(self, network: Network) -> None:
        """Write campaign.json and plan.json; a campaign that goes on has both, and adds the time."""
        now = WallClock().wall().isoformat(timespec="seconds")
        if self._resumed is not None:
            if (planned := self._resumed.plan.network) != network.name:
                raise ResumeError(f"{self.store.folder}: begun on the network {planned}, and this is {network.name}")
            self.store.add_to_description("resumed", now)
            self._programs = self._resumed.plan.programs
            self._resumed.clear(self.say)
            return
        it = self.options
        self.store.describe(of_all_runs(network.name, it.seed, it.command_line, now) | of_scenarios(self._cells))
        if self.entries:
            self._programs = programs_of(entry.agent for entry in self.entries)
            began, cells = (hashed(absolute(it.plugins)), self._programs), cells_of(self.entries, self._files)
            plan = Plan(wedgehog_version(), network.name, it.world, it.seed, it.turn_s, *began, cells)
            plan.write(self.store.folder)


def _of_control(agent: AgentSpec) -> tuple[str, str]:
    """Where the control run of an agent is kept, below the folder of the campaign."""
    return "control", f"{agent.family}-{agent.name}"


def _output(control: Path) -> str:
    """Where what the agent printed in its control run is; empty if it printed nothing."""
    log = control / "agent.log"
    return f" (all that it printed: {log})" if log.is_file() and log.stat().st_size else ""


async def _end(tasks: Sequence["asyncio.Task[object]"]) -> None:
    for task in tasks:
        if not task.cancelling():  # a second cancellation would interrupt its cleanup
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
