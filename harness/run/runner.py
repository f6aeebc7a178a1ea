"""Plays one scenario against one agent and records what happened."""

import asyncio
import contextlib
import shutil
import tempfile
import traceback
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from wedgehog.fake_llm.server import FakeLLM
from wedgehog.fake_llm.token_endpoint import TokenEndpoint
from wedgehog.harness.agents.backend_links import passwords
from wedgehog.harness.agents.base import AgentError, Session
from wedgehog.harness.agents.context import AgentContext, no_wait
from wedgehog.harness.agents.sessions import contexts, open_sessions
from wedgehog.harness.agents.sim_host import agent_waits
from wedgehog.harness.agents.spec import folder_of
from wedgehog.harness.faults.reply_fault import leave_the_words
from wedgehog.harness.inject.injector import Injector
from wedgehog.harness.inject.limited_reply import PartialDelivery
from wedgehog.harness.inject.targets import Targets
from wedgehog.harness.network.base import Network, NetworkError
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.run import AskerSeen, LagSeen, Trouble
from wedgehog.harness.record.events.service import BeaconSeen
from wedgehog.harness.record.history import History
from wedgehog.harness.record.store import RunStore
from wedgehog.harness.run.agent_sandbox import AgentSandbox
from wedgehog.harness.run.control import ControlFacts, read_control
from wedgehog.harness.run.deadline import Deadline
from wedgehog.harness.run.job import Job
from wedgehog.harness.run.messages import RunMessages, RunTokens
from wedgehog.harness.run.project_folder import ProjectFolder
from wedgehog.harness.run.recording.recorder import Recorder
from wedgehog.harness.run.run_parts import RunParts
from wedgehog.harness.run.run_services import CANARY, WEB, Links, RunServices
from wedgehog.harness.run.scripted_model import positions_of, script_of
from wedgehog.harness.run.scripted_replies import ScriptedReplies
from wedgehog.harness.run.session_files import SessionFiles
from wedgehog.harness.run.turn import (
    HANG_UP_ARRIVES_S,
    IN_VIRTUAL_TIME,
    TICK_S,
    VIRTUAL_TICK_S,
    AfterStop,
    NetworkBrokeError,
    TurnPlayer,
)
from wedgehog.harness.run.turns import Turns, control_facts
from wedgehog.harness.run.watching.agent_processes import AgentProcesses
from wedgehog.harness.run.watching.at_work import AtWork
from wedgehog.harness.run.watching.connection_watch import ConnectionWatch, RunConnections
from wedgehog.harness.run.watching.cpu_wait import CpuMeter, CpuWatch, LagMonitor
from wedgehog.harness.run.watching.diagnostics import Diagnostics, SimDiagnostics
from wedgehog.harness.sandbox.disk import NoDiskError
from wedgehog.harness.sandbox.hosts.private_hosts import PrivateHosts
from wedgehog.harness.sandbox.namespaces import NoNetworkError
from wedgehog.harness.sandbox.process_info import peers_of
from wedgehog.harness.scenario.trigger import BACKEND, CHANNEL, CHAT, COMPACTION, HOST, STORE
from wedgehog.harness.services import beacon
from wedgehog.harness.services.backend import host_port
from wedgehog.harness.sim.loop import watch_commands
from wedgehog.harness.stdio_proxy.session import StdioServer

ALIVE_EVERY_S = 0.5
KILL_GRACE_S = 5.0
"""For an agent to end by a signal that it can handle; divided by the time scale, but never less than the next."""
KILL_GRACE_LEAST_S = 1.0


async def run(
    job: Job,
    network: Network,
    store: RunStore,
    clock: Clock,
    cpu: CpuWatch | None = None,
    connections: ConnectionWatch | None = None,
) -> tuple[History, ControlFacts | None]:
    """Play one scenario against one agent: the history, and for a control run its facts.

    With `cpu` the history says how long the run waited for processors, and with `connections` whether the agent had
    any to other machines.
    An error on our side is an event `trouble` in the history, never an exception; cancellation passes.
    """
    store.hides |= passwords(job.agent)
    history = History(clock, sink=store.write)
    facts: ControlFacts | None = None
    try:
        with cpu.meter(job.mark, clock) if cpu is not None else contextlib.nullcontext() as meter:
            history.add(job.started(clock))
            async with _own_folder(job.scratch) as folder:
                facts = await _Run(job, network, store, clock, history, meter, connections, folder).play()
    except (AgentError, NetworkError, NoDiskError, NoNetworkError) as wrong:
        history.add(Trouble(what=str(wrong)))
    except NetworkBrokeError:
        pass
    except Exception as wrong:  # any other exception is an error of ours, and other runs go on
        history.add(Trouble(what=f"the harness itself failed: {type(wrong).__name__}: {wrong}"))
        store.keep_text("trouble.txt", traceback.format_exc())
    history.seal()
    store.hide_in("agent.log")
    if job.control is None and facts is None:
        facts = read_control(history, {}, False, None)
    return history, facts


class _Run:
    """The parts of one run: its constructor makes them, `play` opens them and takes the steps of the run."""

    def __init__(
        self,
        job: Job,
        network: Network,
        store: RunStore,
        clock: Clock,
        history: History,
        cpu: CpuMeter | None,
        connections: ConnectionWatch | None,
        folder: Path,
    ) -> None:
        """Nothing is open yet. Parts that need each other get a callback of one line."""
        scenario, scale, control = job.scenario, job.time_scale, job.control
        links = Links(network, scenario.plan(scale))
        self.job, self.network, self.links, self.store = job, network, links, store
        self.simulated = network.name == "sim"
        self.clock, self.history, self.cpu, self.connections, self.folder = clock, history, cpu, connections, folder
        tokens = RunTokens(f"{job.seed} {scenario.name} {job.agent.name} {job.words}")
        self.messages = RunMessages(scenario, tokens, scale, job.recovery_calls)
        self.sandbox = AgentSandbox(job, links, history, folder)
        self.turns = self.messages.replies()
        self.positions = positions_of(job, tokens.salt)
        self.processes = AgentProcesses(f"{job.mark}/agent", clock, session_of=scenario.session_of)
        self.files = self._session_files()
        self.project = ProjectFolder(scenario, lambda: self.context, history, folder_of(job.agent))
        self.injector = Injector(
            links.plan,
            links,
            history,
            clock,
            scenario.messages(scale),
            targets=self._targets(),
            delivered=self._delivered,
        )
        log = store.folder / "tools.log"
        self.services = RunServices(
            scenario, job.agent, links, self.injector, history, self.positions, clock, scale, folder, job.mark, log
        )
        self.urls = {"web_url": "", "cwd": ""}
        trace = folder / "cwd" / beacon.FILE_NAME
        self.beacons = beacon.BeaconFile(trace, self._beacon_seen, one_line=bool(job.agent.calls_in_text))
        script = script_of(
            job, self.positions, self.turns, self.messages.conversations(), self.urls, self.beacons.wrapped
        )
        self.tokens = TokenEndpoint(self.injector.tokens.asked, self.injector.tokens.expires_in)
        self.replies = ScriptedReplies(script, self.injector, clock, self.services.offered, self.tokens)
        asks_below = control is None or "worker" in scenario.needs
        look = self._look_for_askers if asks_below and not self.simulated else self.beacons.look
        self.recorder = Recorder(
            history,
            clock,
            self.replies,
            self.injector,
            store.keep_body,
            look,
            has_tools=bool(scenario.tools),
            harms_summaries=any(it.at.on == COMPACTION for it in scenario.faults),
            rules=scenario.rules,
        )
        self.pipes = StdioServer(network, self.injector.pipes.resets, self.injector.pipes)

    def _session_files(self) -> SessionFiles:
        """The session files of the agent, in folders that are known when it is opened."""
        return SessionFiles(
            self.job.agent,
            lambda: self.context,
            self.history,
            self.messages.tokens.salt,
            self.store.folder,
            self.job.beside or Path(),
            self.job.scenario.session_of,
            lambda: self.contexts,
        )

    def _targets(self) -> Targets:
        """What faults can strike beside the links."""
        return Targets(
            self.processes,
            self.files,
            disk=lambda: self.context.disk,
            grace_s=max(KILL_GRACE_LEAST_S, KILL_GRACE_S / self.job.time_scale),
            server=lambda: self.services,
            hosts=lambda: self.context.hosts,
            databases=lambda: self.sandbox.databases(self.context, list(self.contexts.values())),
        )

    async def play(self) -> ControlFacts | None:
        """Open everything, play the turns, heal; the facts of a control run."""
        lag = LagMonitor(self.clock)
        async with (
            contextlib.nullcontext() if self.simulated else lag,  # in virtual time nothing is late
            self._connections() as connections,
            self.pipes,
            self.services,
            self._provider() as llm,
            self.links.open("llm", (llm.host, llm.port)),
        ):
            try:
                self.context = self._agent_context()
                self.contexts = contexts(self.job.agent, self.context, self.job.scenario.sessions)
                self.urls |= {"web_url": self.context.web_url or "", "cwd": str(self.context.cwd)}
                async with self._background(), self._agent() as session:
                    await self._all_turns(session, lag)
            finally:
                await self.injector.close()
                self.recorder.flush()
                if connections is not None and connections.seen is not None:
                    self.history.add(connections.seen)
                if self.cpu is not None:
                    self.history.add(self.cpu.seen(0))
                self.history.add(LagSeen(worst_s=lag.worst_s))
        return control_facts(self.history, self.replies, self.job.agent.wire) if self.job.control is None else None

    def _connections(self) -> contextlib.AbstractAsyncContextManager[RunConnections | None]:
        """Those of the agent to other machines; a private network of its own shows what is refused."""
        if self.connections is None or self.job.agent.hosts:
            return contextlib.nullcontext()
        return self.connections.of(self.processes.pids)

    def _provider(self) -> FakeLLM:
        planned = self.injector.plan.faults
        return FakeLLM(
            self.replies,
            self.recorder,
            clock=self.clock,
            close_after=self.injector.closes_after,
            waits_for_close=True,
            tokens=self.tokens,
            gateway=any(it.fault.unofficial and not leave_the_words([it.fault.name]) for it in planned),
        )

    def _agent_context(self) -> AgentContext:
        links = self.links
        return AgentContext(
            folder=self.folder,
            llm_url=links.url("llm") or "",
            key=CANARY,
            session=self.messages.tokens.session,
            run_id=self.job.mark,
            log=self.store.folder / "agent.log",
            clock=self.clock,
            time_scale=self.job.time_scale,
            tool_url=links.url(HOST, path="/mcp"),
            tool_command=self.services.tool_command,
            store_url=links.url(STORE, scheme="tcp"),
            web_url=links.url(WEB),
            disk=self.sandbox.small_disk(),
            hosts=self.sandbox.private_hosts(),
            chat=self.services.chat,
            chat_url=links.url(CHAT),
            backends={name: host_port(links[BACKEND + name].address) for name in self.job.agent.links},
            pipe=self.pipes.address,
            simulated=self.simulated,
            port=self.services.port,
            front_url=links.url(CHANNEL),
            browser=self.job.browser,
            browser_clock_s=self.job.scenario.browser_clock_s,
            one_user=self.job.scenario.one_user,
            warm=self.job.warm,
            waited_s=partial(self.cpu.waited_s, with_harness=True) if self.cpu is not None else no_wait,
            work=AtWork(self.history, self.injector, self.beacons.look, self.recorder.sent),
        )

    @contextlib.asynccontextmanager
    async def _agent(self) -> AsyncIterator[Session]:
        """The open agent, between a planted session and the session that it leaves."""
        self.files.plant(0, self.job.scenario.session)
        self.project.write(0)
        spec = self.job.agent
        scenario = self.job.scenario
        at_once, struck = scenario.sessions_at_once, "processes" in scenario.needs
        async with open_sessions(spec, self.contexts, at_once=at_once, struck=struck) as sessions:
            self.processes.sessions.extend(sessions)
            try:
                yield sessions[0]
            finally:
                self.files.keep()

    async def _all_turns(self, session: Session, lag: LagMonitor) -> None:
        hosts, store = self.context.hosts, self.store
        inside = hosts.links_by_address if isinstance(hosts, PrivateHosts) else {}
        processes, links = self.processes, self.links.addresses()
        processes.peers = lambda found: peers_of(found, links, inside)
        parts = RunParts(self.history, self.injector, self.positions, self.clock, lag, self.cpu)
        player = TurnPlayer(
            parts,
            Deadline(parts, self.job.bounds, VIRTUAL_TICK_S if self.simulated else TICK_S),
            session,
            stays=self.job.agent.kind != "command",
            look=self.beacons.look,
            hung=SimDiagnostics(self.history, store.folder, self.clock, agent_waits).at
            if self.simulated
            else Diagnostics(processes, links, self.history, store.folder, self.clock, inside).at,
            sessions=processes.sessions,
            watch=IN_VIRTUAL_TIME if self.simulated else AfterStop(),
            hang_up_s=HANG_UP_ARRIVES_S,
        )
        turns = Turns(self.messages, player, self.files, self.project, self.job.agent)
        await (turns.play() if self.job.control else turns.play_control(self.replies, self.turns))

    @contextlib.asynccontextmanager
    async def _background(self) -> AsyncIterator[None]:
        """Watch the beacons and the network meanwhile."""
        if self.simulated:
            watch_commands(self.beacons.look, self.job.live_time_scale)
        works = [] if self.simulated else [self.beacons.watch(self.clock), self._watch_network()]
        tasks = [asyncio.create_task(work) for work in works]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch_network(self) -> None:
        """A network that dies during the run is our error, whether or not a fault is being armed just then."""
        await self.clock.sleep(ALIVE_EVERY_S)
        while await self.network.alive():
            await self.clock.sleep(ALIVE_EVERY_S)
        self.injector.network_died()

    def _delivered(self, call: int, cut: PartialDelivery | None) -> None:
        self.recorder.delivered(call, cut)

    def _beacon_seen(self, trace: beacon.Trace) -> None:
        seen = BeaconSeen(token=trace.token, phase=trace.phase, exit_code=trace.exit_code, background=trace.background)
        self.history.add(seen)
        self.injector.beacon(trace.token, trace.phase)

    def _look_for_askers(self) -> None:
        """Look for beacons, and for the process that asks now, if it is not the agent's own one."""
        self.beacons.look()
        if pids := tuple(it.pid for it in self.processes.askers()):
            self.history.add(AskerSeen(pids=pids))


@contextlib.asynccontextmanager
async def _own_folder(parent: Path | None) -> AsyncIterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="wedgehog-", dir=parent))
    try:
        yield folder
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
