"""Plays one scenario against one agent and records what happened."""

import asyncio
import contextlib
import shutil
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wedgehog.fake_llm.conversation import Conversation
from wedgehog.fake_llm.reply import Reply, Text, ToolCall
from wedgehog.fake_llm.script.position import MainShape, Positions
from wedgehog.fake_llm.script.roles import find_named, find_shell
from wedgehog.fake_llm.script.turns import ScriptedTurn, TurnScript
from wedgehog.harness.agents.base import AgentContext, AgentError, Session, open_agent
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.inject import Injector
from wedgehog.harness.network.base import Network, NetworkError
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.event import (
    AgentStarted,
    BeaconSeen,
    HostRefused,
    LagSeen,
    PageAsked,
    RunStarted,
    StimulusKind,
    Trouble,
)
from wedgehog.harness.record.history import History
from wedgehog.harness.record.store import RunStore
from wedgehog.harness.record.turn_outcome import outcome_of, plain
from wedgehog.harness.run.agent_targets import AgentAim, SessionWatch
from wedgehog.harness.run.control import CONTROL_TOOL, ControlFacts, read_control, shape_in
from wedgehog.harness.run.cpu_wait import CpuMeter, CpuWatch
from wedgehog.harness.run.diagnostics import Diagnostics
from wedgehog.harness.run.lag_monitor import LagMonitor
from wedgehog.harness.run.recorder import Recorder
from wedgehog.harness.run.run_services import RunServices
from wedgehog.harness.run.scripted_replies import ScriptedReplies
from wedgehog.harness.run.session_files import SessionFiles
from wedgehog.harness.run.tokens import RunTokens
from wedgehog.harness.run.turn import Bounds, NetworkBrokeError, TurnPlayer, UserMessage
from wedgehog.harness.run.world import World, open_world
from wedgehog.harness.sandbox.disk import NoDiskError, SmallDisk
from wedgehog.harness.sandbox.hosts.private_hosts import PrivateHosts
from wedgehog.harness.sandbox.namespaces import NoNetworkError
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.services import beacon
from wedgehog.harness.stdio_proxy.session import StdioServer

TURN_S = 120.0
"""The stock bound of a turn, where neither the spec nor the scenario names one."""
RECOVERY_TEXT = "Are you all right? Please answer."
CANARY = "sk-wedgehog-canary"
ALIVE_EVERY_S = 0.5
KILL_GRACE_S = 5.0
"""For an agent to end by a signal that it can handle; the story's seconds, but never less than the next."""
KILL_GRACE_LEAST_S = 1.0


@dataclass(frozen=True)
class Job:
    """One run to be made."""

    scenario: Scenario
    agent: AgentSpec
    control: ControlFacts | None
    """None: this is the control run."""
    seed: int
    mark: str
    """What all processes of the run carry: `campaign/run`."""
    network_name: str
    beside: Path | None = None
    """The scenario file's folder, from which its planted files are taken."""
    scratch: Path | None = None
    """Where the run's own folder is made, and removed again; None: where the system keeps such things."""

    @property
    def time_scale(self) -> float:
        """The scenario's, for an agent that can be told; else 1."""
        return self.scenario.time_scale if self.agent.scales_time else 1.0

    @property
    def turn_s(self) -> float:
        """The smaller of the spec's and the scenario's turn bound, in real seconds; the control run has the stock one.

        There it is to be seen how long the agent takes to exit, whatever its limit is.
        """
        asked = (self.scenario.invariants.get("turn_deadline") or {}).get("turn_s")
        mine = float(asked) / self.time_scale if asked is not None else None
        limit = self.agent.limits.turn_s if self.control else None
        return min([bound for bound in (mine, limit) if bound is not None], default=TURN_S)


async def run(
    job: Job, network: Network, store: RunStore, clock: Clock, cpu: CpuWatch | None = None
) -> tuple[History, ControlFacts | None]:
    """Play one scenario against one agent: the history, and for a control run what it showed.

    With `cpu` the history tells how long the run waited for processors.

    Whatever goes wrong on our side is an event `trouble` in the history, never an exception; cancellation passes.
    """
    history = History(clock, sink=store)
    facts: ControlFacts | None = None
    try:
        with cpu.meter(job.mark, clock) if cpu is not None else contextlib.nullcontext() as meter:
            facts = await _Run(job, network, store, clock, history, meter).play()
    except (AgentError, NetworkError, NoDiskError, NoNetworkError) as wrong:
        history.add(Trouble(what=str(wrong)))
    except NetworkBrokeError:
        pass
    except Exception as wrong:  # whatever we die of is an error of ours, and other runs go on
        history.add(Trouble(what=f"the harness itself failed: {type(wrong).__name__}: {wrong}"))
        store.keep_text("trouble.txt", traceback.format_exc())
    history.seal()
    if job.control is None and facts is None:
        facts = read_control(history, {}, {}, None)
    return history, facts


class _Run:
    """The parts of one run, put together."""

    def __init__(
        self,
        job: Job,
        network: Network,
        store: RunStore,
        clock: Clock,
        history: History,
        cpu: CpuMeter | None = None,
    ) -> None:
        self.cpu = cpu
        self.job, self.network, self.store, self.clock, self.history = job, network, store, clock, history
        self.words = RunTokens(f"{job.seed} {job.scenario.name} {job.agent.name}")
        self.plan = job.scenario.plan(job.time_scale)
        self.folder = Path(tempfile.mkdtemp(prefix="wedgehog-", dir=job.scratch))
        self.started_pid: int | None = None
        self.hosts: PrivateHosts | None = None
        self.beacon_file = self.folder / "cwd" / beacon.FILE_NAME
        self.trail = beacon.BeaconFile(self.beacon_file, self._beacon_seen)
        self.nemesis = Injector(self.plan, {}, history, clock, job.scenario.messages(job.time_scale))
        self.pipes = StdioServer(network, self.nemesis.pipes.resets, self.nemesis.pipes)
        self.positions = Positions(self.words.salt, shape_in(job.scenario, job.control) if job.control else None)
        self.tools = RunServices(
            job.scenario, job.agent, self.nemesis, history, self.positions, clock, job.time_scale
        ).place(self.folder, job.mark, store.folder / "tools.log")
        self.script = TurnScript(self.positions, self._turns(), beacon=self._with_beacon)
        self.script.nonce_per_call = job.control is None
        self.play_script = ScriptedReplies(self.script, self.nemesis, clock)
        self.recorder = Recorder(history, clock, self.play_script, self.nemesis, store.keep_body)
        self.recorder.look = self.trail.look
        self.play_script.recorder = self.recorder
        self.play_script.offered = self.tools.offered
        self.nemesis.state.delivered = self.recorder.delivered

    async def play(self) -> ControlFacts | None:
        """Frame, world, agent, turns, healing, recovery, seal."""
        self._frame()
        try:
            async with (
                LagMonitor(self.clock) as watchdog,
                self.pipes,
                self.tools,
                open_world(
                    self.network,
                    self.plan,
                    self.play_script,
                    self.recorder,
                    self.job.scenario.web,
                    self.job.time_scale,
                    self.clock,
                    self._note_page,
                    self.tools.upstreams,
                ) as world,
            ):
                self.tools.connect(world.links)
                world.llm.close_after = self.nemesis.closes_after
                self.nemesis.use(world.links)
                self.script.values = {"web_url": world.url("tool:web")}
                try:
                    await self._with_agent(world, watchdog)
                finally:
                    await self.nemesis.close()
                    self.recorder.flush()
                    if self.cpu is not None:
                        self.history.add(self.cpu.seen(0))
                    self.history.add(LagSeen(worst_s=watchdog.worst_s))
        finally:
            await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)
        return self._control_facts() if self.job.control is None else None

    async def _with_agent(self, world: World, watchdog: LagMonitor) -> None:
        spec, place = self.job.agent, self._place(world)
        async with contextlib.AsyncExitStack() as stack:
            watchers = [asyncio.create_task(self.trail.watch(self.clock)), asyncio.create_task(self._watch_network())]
            stack.push_async_callback(_end_all, watchers)
            files = SessionFiles(spec, place, self.history, self.job.beside or Path(), self.store.folder / "session")
            files.plant(0, self.job.scenario.session)
            session = await stack.enter_async_context(open_agent(spec, place))
            stack.callback(files.keep)
            sessions = self._take_aim(place, session)
            player = TurnPlayer(
                session,
                self.history,
                self.nemesis,
                self.positions,
                watchdog,
                self.clock,
                self._bounds(),
                stays=spec.kind != "command",
                look=self.trail.look,
                sessions=sessions,
                hung=self._forensics(world, sessions).at,
                cpu=self.cpu,
            )
            await self._all_turns(player, session, files)

    async def _all_turns(self, player: TurnPlayer, session: Session, files: SessionFiles) -> None:
        for number, turn in enumerate(self.job.scenario.turns, start=1):
            if self.job.control is None and number > 1 and not self._ready_for_tools():
                break
            if turn.during is not None:
                continue
            files.plant(number, turn.append)
            first = number == 1 and self.job.scenario.session is None
            await player.play(self._message_of(number), first=first, during=self._during(number))
            if number == 1 or (self.job.agent.kind != "command" and session.started.pid != self.started_pid):
                self._agent_started(session)
        if self.job.control is not None:
            await self._recover(player, len(self.job.scenario.turns) + 1)

    async def _recover(self, player: TurnPlayer, number: int) -> None:
        """One more message must be answered; after an error that it surfaced, a second one once it cooled down."""
        await player.play(self._message(number, "recovery", RECOVERY_TEXT), first=False)
        so_far = History(events=self.history.events).seal()
        turn = so_far.turns[-1]
        refused = any(call.refused and call.refused.pairing for call in turn.calls)
        if outcome_of(turn, so_far).kind == "surfaced" and not refused:
            await self.clock.sleep(self.job.agent.recover_s)
            await player.play(self._message(number + 1, "recovery", RECOVERY_TEXT), first=False)

    def _ready_for_tools(self) -> bool:
        """After the control's first message: go on only if it was answered, with a tool round where it has a shell."""
        answered_by = self._answered_by()
        if answered_by is None:
            return False
        tools, turn = self.play_script.tools_seen[answered_by].tools, self.script.turns[2]
        if find_shell(tools) is None:
            # Our tool host will do as well; without either there is no tool round.
            call = (Reply((ToolCall(CONTROL_TOOL, {}),)),) if find_named(tools, CONTROL_TOOL) else ()
            self.script.turns = {**self.script.turns, 2: replace(turn, replies=(*call, *turn.replies[-1:]))}
        return True

    def _answered_by(self) -> int | None:
        so_far = History(events=self.history.events).seal()
        turn = so_far.turns[0]
        answer = plain(turn.end.answer) if turn.end else ""
        return next(
            (call.number for call in turn.calls if call.paid and plain(self.script.nonce_of(call.number)) in answer),
            None,
        )

    def _control_facts(self) -> ControlFacts:
        seen: dict[int, Conversation] = self.play_script.tools_seen
        shells = {call: find_shell(talk.tools) is not None for call, talk in seen.items()}
        shapes: dict[int, MainShape] = self.play_script.shapes
        history = History(events=self.history.events).seal()
        return read_control(
            history, shapes, shells, self._answered_by() if history.turns else None, self.job.agent.wire
        )

    def _bounds(self) -> Bounds:
        control = self.job.control or ControlFacts(False)
        return Bounds(self.job.turn_s, self.job.agent.start_s, control.start_up_s, control.exit_s)

    def _frame(self) -> None:
        job = self.job
        self.history.add(
            RunStarted(
                scenario=job.scenario.name,
                agent=job.agent.name,
                network=job.network_name,
                time_scale=job.time_scale,
                started=self.clock.wall().isoformat(),
                error_patterns=job.agent.errors,
                error_at_path=job.agent.error_at_path,
                usual=tuple(sorted(job.control.usual)) if job.control else (),
                carries_nonces=job.control is None or job.control.passed,
                start_up_s=job.control.start_up_s if job.control else 0.0,
                exit_s=job.control.exit_s if job.control else 0.0,
                turns=len(job.scenario.turns),
                price_as=job.agent.price_as,
            )
        )

    def _turns(self) -> dict[int, ScriptedTurn]:
        scripted = {
            number: ScriptedTurn(
                tuple(faster(reply, self.job.time_scale) for reply in turn.replies), self.words.nonce(number)
            )
            for number, turn in enumerate(self.job.scenario.turns, start=1)
        }
        last = len(scripted)
        well = (Reply((Text("All is well again. {nonce}"),)),)
        return scripted | {n: ScriptedTurn(well, self.words.nonce(n)) for n in (last + 1, last + 2)}

    def _message(self, number: int, kind: StimulusKind, text: str) -> UserMessage:
        return UserMessage(number, kind, text, self.words.marker(number), self.words.nonce(number))

    def _message_of(self, number: int) -> UserMessage:
        turn = self.job.scenario.turns[number - 1]
        return self._message(number, turn.stimulus, turn.text)

    def _during(self, number: int) -> dict[int, UserMessage]:
        """Messages that are given while this turn, or one that is given while it is, is under way."""
        turns = enumerate(self.job.scenario.turns, start=1)
        direct = [n for n, turn in turns if turn.during is not None and turn.during.turn == number]
        return {n: self._message_of(n) for n in direct} | {m: it for n in direct for m, it in self._during(n).items()}

    def _place(self, world: World) -> AgentContext:
        place = AgentContext(
            folder=self.folder,
            llm_url=world.url("llm"),
            key=CANARY,
            session=f"s{self.words.salt}",
            run_id=self.job.mark,
            log=self.store.folder / "agent.log",
            clock=self.clock,
            time_scale=self.job.time_scale,
            web_url=world.url("tool:web") or None,
            tool_url=self.tools.tool_url,
            tool_command=self.tools.tool_command,
            store_url=self.tools.store_url,
            chat=self.tools.chat,
            chat_url=self.tools.chat_url,
            pipe=self.pipes.address,
        )
        if "disk" in self.job.scenario.needs:
            place = replace(place, disk=SmallDisk(place.folder, [place.home, place.session_dir]))
        if self.job.agent.hosts:
            links = {name: link.address for name, link in world.links.items()}
            self.hosts = PrivateHosts(self.job.agent.hosts, links, place.folder, self._host_refused)
            place = replace(place, hosts=self.hosts)
        return place

    def _take_aim(self, place: AgentContext, session: Session) -> list[Session]:
        """Faults on processes hit this agent, with whatever sessions are in the list."""
        aim = AgentAim(f"{self.job.mark}/agent", self.clock, [session])
        watch = SessionWatch(self.job.agent, place, self.history, self.words.salt, self.store.folder)
        self.nemesis.aim(aim, watch, max(KILL_GRACE_LEAST_S, KILL_GRACE_S / self.job.time_scale), place.disk)
        return aim.sessions

    def _forensics(self, world: World, sessions: Sequence[Session]) -> Diagnostics:
        """Who looks at an agent that is over its time."""
        return Diagnostics(
            f"{self.job.mark}/agent",
            lambda: [session.leader.pid for session in sessions if session.leader is not None],
            {name: link.address for name, link in world.links.items()},
            self.history,
            self.store.folder,
            self.clock,
            self.hosts.doors if self.hosts is not None else {},
        )

    def _with_beacon(self, command: str, token: str) -> str:
        return beacon.wrapped(command, token, self.beacon_file)

    def _beacon_seen(self, trace: beacon.Trace) -> None:
        self.history.add(
            BeaconSeen(token=trace.token, phase=trace.phase, exit_code=trace.exit_code, background=trace.background)
        )
        self.nemesis.beacon(trace.token, trace.phase)

    async def _watch_network(self) -> None:
        """A network that dies in mid run is our trouble, whether or not a fault is being armed just then."""
        while True:
            await self.clock.sleep(ALIVE_EVERY_S)
            if not await self.network.alive():
                self.nemesis.network_died()
                return

    def _note_page(self, path: str, status: int) -> None:
        if not self.history.sealed:
            self.history.add(PageAsked(path=path, status=status))

    def _host_refused(self, host: str, why: str) -> None:
        if not self.history.sealed:
            self.history.add(HostRefused(host=host, why=why))

    def _agent_started(self, session: Session) -> None:
        started = session.started
        self.started_pid = started.pid
        self.history.add(
            AgentStarted(
                argv=tuple(started.argv),
                executable=started.executable,
                entry=started.entry or "",
                entry_hash=started.entry_hash or "",
                version=started.version or "",
                pid=started.pid or 0,
            )
        )


def faster(reply: Reply, time_scale: float) -> Reply:
    """The same reply with its delay and its pace divided by `time_scale`."""
    items = tuple(
        replace(item, pace_ms=item.pace_ms / time_scale) if isinstance(item, Text) else item for item in reply.items
    )
    return replace(reply, items=items, delay_s=reply.delay_s / time_scale)


async def _end_all(tasks: list["asyncio.Task[None]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
