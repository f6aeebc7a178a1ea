"""Measures an agent's timers: plays every probe, and all of them again for each changed knob.

How long it waits for a connection that is never accepted is measured without a scenario. The backlog of our port is
full, so the system neither accepts nor refuses; the kernel says who tries to connect. Linux only.
"""

import asyncio
import contextlib
import math
import secrets
import socket
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from wedgehog.harness.agents.base import AgentError, Outcome, Session
from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.opening import open_agent
from wedgehog.harness.agents.spec import AgentSpec, renamed
from wedgehog.harness.agents.spec_keys import Limits, Timeout
from wedgehog.harness.campaign.campaign import Campaign
from wedgehog.harness.campaign.options import Options
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.commands.timers.chain import Measured
from wedgehog.harness.commands.timers.probe import CONNECT, PROBES, Probe
from wedgehog.harness.commands.timers.taken import Taken, TimedAttempt, Turned, taken
from wedgehog.harness.network.choose import Mode
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.network.tcp_diag import SYN_SENT, TcpDiag
from wedgehog.harness.record.clock import Clock, WallClock
from wedgehog.harness.record.history import read
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import safe_name
from wedgehog.harness.record.turn_outcome import OutcomeKind
from wedgehog.harness.run.run_services import CANARY
from wedgehog.harness.sandbox.cleanup import carrying, end_all
from wedgehog.harness.sandbox.watchdog_process import WatchdogProcess
from wedgehog.harness.scenario.scenario_file import load_scenario

SMALL_S = 3.0
"""The new value of a knob above twice this value; a smaller one is doubled."""
LEAST_S = 1.0
"""The minimum increase of a knob: less is not visible in the noise."""
OVERHEAD_S = 15.0
"""The expected overhead of a run: two starts of the agent."""
DOUBTFUL = 2
"""A knob that moves so few probes is tried again: a busy machine moves some too."""

TICK_S = 0.02
FILLERS = 3

ProgressLine = Callable[[str], None]


class NotMeasuredError(ValueError):
    """The control run of the agent failed; a message of one line."""


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """Options of the measurement."""

    look_out_s: float = 60.0
    network: Mode = "embedded"
    jobs: int = 3
    keep: Path | None = None


class _Progress:
    """Prints a line for each finished probe."""

    def __init__(self, runs: int, say: ProgressLine) -> None:
        self._runs, self._say, self._done = runs, say, 0

    def begins(self, what: str) -> None:
        """Print nothing."""

    def ended(self, what: str, judgement: Judgement | None) -> None:
        """Count a probe."""
        if judgement is not None:
            self._done += 1
            self._say(f"[{self._done}/{self._runs}] {what.removeprefix('timer-')}")


async def take(agent: AgentSpec, how: ProbeOptions, say: ProgressLine) -> Measured:
    """Measure; progress goes to `say`. Raises NotMeasuredError and the errors of a campaign."""
    variants = [(knob, s, turned(agent, knob, s)) for knob, s in knobs(agent)]
    agents = (agent, *(it for _, _, it in variants))
    runs = len(PROBES) * len(agents)
    rounds = math.ceil(runs / how.jobs) + math.ceil(len(agents) / how.jobs) + 1  # connect probes, control runs
    minutes = math.ceil(rounds * (how.look_out_s + OVERHEAD_S) / 60)
    watch = f"{runs} runs, {how.jobs} at a time, each observed for {how.look_out_s:g} s"
    say(f"{watch}: about {minutes} min if no stall ends earlier")
    with tempfile.TemporaryDirectory() as scratch:
        out = how.keep or Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        takens = await _played([(bare(it), probe) for it in agents for probe in PROBES], out, how, say)
        connects = await _connects(agents, out, how)
        played = [takens[first : first + len(PROBES)] for first in range(0, len(takens), len(PROBES))]
        # The endless reply first, then the probes in the order of a request.
        own, *others = [(total, call, *rest) for (total, *rest), call in zip(played, connects, strict=True)]
        turns = [Turned(knob, s, them) for (knob, s, _), them in zip(variants, others, strict=True)]
        turns = [await _confirmed(it, agent, own, out, how, say) for it in turns]
    return Measured(agent, how.look_out_s, own, tuple(turns))


async def _confirmed(
    knob: Turned, agent: AgentSpec, before: Sequence[Taken], out: Path, how: ProbeOptions, say: ProgressLine
) -> Turned:
    """The knob without the probes that it moved by chance: if they are few, they are played again, with it and without.

    The connection that is never accepted is no scenario, and stays as it was measured.
    """
    probes = [probe for probe in PROBES if probe.name in knob.moves(before)]
    if not 0 < len(knob.moves(before)) <= DOUBTFUL or not probes:
        return knob
    say(f"knob {knob.timer.name!r} moves only {', '.join(it.name for it in probes)}: played again")
    agents = (bare(agent), bare(turned(agent, knob.timer, knob.s)))
    folder = out / f"again-{safe_name(knob.timer.name)}"
    folder.mkdir(exist_ok=True)
    takens = await _played([(it, probe) for it in agents for probe in probes], folder, how, say)
    was, now = takens[: len(probes)], takens[len(probes) :]
    moved = Turned(knob.timer, knob.s, tuple(now)).moves(was)
    return replace(knob, by_chance=frozenset(it.name for it in probes if it.name not in moved))


def knobs(agent: AgentSpec) -> list[tuple[Timeout, float]]:
    """Return the timers that the spec can set, each with its new value."""
    return [(it, _other_s(it, agent.timeouts)) for it in agent.timeouts if it.name in agent.settable]


def _other_s(knob: Timeout, timers: Sequence[Timeout]) -> float:
    """Return another value that does not exceed the outer timer."""
    if knob.s > 2 * SMALL_S:
        return SMALL_S
    more_s = max(2 * knob.s, knob.s + LEAST_S)
    hidden = any(outer.name == knob.inside and outer.s <= more_s for outer in timers)
    return knob.s / 2 if hidden else more_s


def turned(agent: AgentSpec, knob: Timeout, s: float) -> AgentSpec:
    """Return the agent with one timer set to `s` seconds."""
    timers = tuple(it.model_copy(update={"s": s}) if it.name == knob.name else it for it in agent.timeouts)
    return renamed(agent.model_copy(update={"timeouts": timers}), f"{agent.name}+{knob.name}-{s:g}")


def bare(agent: AgentSpec) -> AgentSpec:
    """Return the agent without limits, so that it is observed for the whole time."""
    return agent.model_copy(update={"limits": Limits(), "recover_s": 0.0})


async def _played(
    jobs: Sequence[tuple[AgentSpec, Probe]], out: Path, how: ProbeOptions, say: ProgressLine
) -> list[Taken]:
    folder = out / "probes"
    folder.mkdir(exist_ok=True)
    files = {probe.name: load_scenario(probe.write(folder, how.look_out_s)) for _, probe in jobs}
    entries = [Entry(files[probe.name], agent) for agent, probe in jobs]
    campaign = Campaign(entries, Options(out, how.network, how.jobs), _Progress(len(jobs), say), say)
    judged = {(it.scenario, it.agent): it for it in await campaign.play()}
    return [_read(probe, judged[probe.scenario, agent.name], campaign.store.folder) for agent, probe in jobs]


def _read(probe: Probe, judged: Judgement, folder: Path) -> Taken:
    if judged.skipped:
        return Taken(probe, skipped=judged.skipped)
    if judged.says.startswith("its control run failed"):
        raise NotMeasuredError(judged.says)
    return taken(probe, read(folder / judged.scenario / safe_name(judged.agent) / "history.jsonl"))


async def _connects(agents: Sequence[AgentSpec], out: Path, how: ProbeOptions) -> list[Taken]:
    """Play the probe that needs no provider, `jobs` at a time."""
    free = asyncio.Semaphore(how.jobs)

    async def one(agent: AgentSpec) -> Taken:
        async with free:
            return await _connect(agent, out, how)

    return await asyncio.gather(*map(one, agents))


async def _connect(agent: AgentSpec, out: Path, how: ProbeOptions) -> Taken:
    """Play it for one agent."""
    not_for = "not for `hosts` or `chat`" if agent.hosts or agent.kind == "chat" else ""
    why = connect_unavailable_reason() or not_for
    if why:
        return Taken(CONNECT, skipped=why)
    mark, clock = f"wedgehog-{secrets.token_hex(4)}", WallClock()
    with (
        tempfile.TemporaryDirectory(prefix=f"{mark}-") as folder,
        WatchdogProcess(mark, Path(folder)),
        BlackHole() as hole,
    ):
        url = f"http://127.0.0.1:{hole.port}"
        context = AgentContext(Path(folder) / "run", url, CANARY, "connect", mark, out / "connect.log", clock)
        try:
            async with open_agent(agent, context) as session:
                return await watched(session, hole, clock, agent.start_s, how.look_out_s)
        except AgentError as wrong:
            return Taken(CONNECT, skipped=str(wrong))
        finally:
            end_all(lambda: carrying(mark), threading.Event().wait)


class BlackHole:
    """A loopback port that neither accepts nor refuses connections while the context is open."""

    def __enter__(self) -> "BlackHole":
        """Listen, and fill the backlog. Raises OSError where the kernel has no sock_diag."""
        self._diag = TcpDiag()
        self._sockets = [socket.socket()]
        self._sockets[0].bind((HOST, 0))
        self._sockets[0].listen(0)
        self.port = int(self._sockets[0].getsockname()[1])
        for _ in range(FILLERS):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex((HOST, self.port))
            self._sockets.append(filler)
        self._own = {one.getsockname()[1] for one in self._sockets}
        return self

    def __exit__(self, *exc_info: object) -> None:
        for one in self._sockets:
            one.close()
        self._diag.close()

    def callers(self) -> set[int]:
        """Return the local ports of connects that are in progress."""
        sockets = self._diag.sockets(remote_ports=[self.port])  # /proc/net/tcp takes ten times as long
        return {it.local[1] for it in sockets if it.state == SYN_SENT} - self._own


def connect_unavailable_reason() -> str | None:
    """Return why connection attempts cannot be observed on this system; None if they can."""
    if view := TcpDiag.open():
        view.close()
        return None
    return "only Linux with sock_diag shows connects in progress"


@dataclass
class Connects:
    """The observed connects: by local port, when each was seen first and last."""

    seen_s: dict[int, tuple[float, float]] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)

    def look(self, hole: BlackHole, now_s: float) -> None:
        """Record the connects in progress."""
        self.open = hole.callers()
        self.seen_s |= {port: (self.seen_s.get(port, (now_s, now_s))[0], now_s) for port in self.open}

    def attempts(self) -> tuple[TimedAttempt, ...]:
        """Return one attempt for each connect, in order."""
        seen = self.seen_s.items()
        return tuple(TimedAttempt(first_s, None if port in self.open else last_s) for port, (first_s, last_s) in seen)


async def watched(session: Session, hole: BlackHole, clock: Clock, start_s: float, look_out_s: float) -> Taken:
    """Send a message and observe the connects until the agent ends or the look-out time is over."""
    connects, begin_s = Connects(), clock.now()
    saying = asyncio.create_task(session.say("What is a hedgehog?", first=True))
    try:
        while not saying.done():
            connects.look(hole, clock.now())
            first_s = min((first_s for first_s, _ in connects.seen_s.values()), default=None)
            if clock.now() > (begin_s + start_s if first_s is None else first_s + look_out_s):
                break
            await asyncio.wait({saying}, timeout=TICK_S)
        over_s = clock.now() if saying.done() else None
        connects.look(hole, clock.now()) if over_s is None else connects.open.clear()
        if over_s is None:
            await session.end_turn(1.0)
        outcome = await saying
    finally:
        saying.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await saying
    return _taken(connects.attempts(), over_s, outcome)


def _taken(attempts: tuple[TimedAttempt, ...], over_s: float | None, outcome: Outcome) -> Taken:
    if not attempts:
        return Taken(CONNECT, skipped="it never connected to the model's address")
    said = "\n".join((outcome.answer, outcome.error, outcome.stdout, outcome.stderr, outcome.raised or ""))
    ended = over_s is not None
    kind: OutcomeKind = "silent" if not ended else "surfaced" if said.strip() else "hidden"
    return Taken(CONNECT, attempts, over_s - attempts[0].began_s if over_s is not None else None, kind, said)
