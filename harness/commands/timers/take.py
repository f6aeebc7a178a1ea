"""Measures an agent's timers: plays every probe, and all of them again for each changed knob."""

import math
import secrets
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wedgehog.harness.agents.base import AgentContext, AgentError, open_agent
from wedgehog.harness.agents.spec import AgentSpec, Limits, Timeout, renamed
from wedgehog.harness.commands.timers.chain import Measured
from wedgehog.harness.commands.timers.connect import BlackHole, connect_unavailable_reason, watched
from wedgehog.harness.commands.timers.probe import CONNECT, PROBES, Probe
from wedgehog.harness.commands.timers.taken import Taken, Turned, taken
from wedgehog.harness.network.choose import Mode
from wedgehog.harness.record.clock import WallClock
from wedgehog.harness.record.history import read
from wedgehog.harness.record.store import Judgement, safe_name
from wedgehog.harness.run.campaign import Campaign, Options
from wedgehog.harness.run.runner import CANARY
from wedgehog.harness.run.selection import Entry
from wedgehog.harness.sandbox import WatchdogProcess, carrying, end_all
from wedgehog.harness.scenario.model import load_scenario

SMALL_S = 3.0
"""The new value of a knob above twice this value; a smaller one is doubled."""
LEAST_S = 1.0
"""The minimum increase of a knob: less is not visible in the noise."""
OVERHEAD_S = 15.0
"""The expected overhead of a run: two starts of the agent."""

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
    rounds = math.ceil(runs / how.jobs) + len(variants) + 2  # plus control runs and connect probes
    minutes = math.ceil(rounds * (how.look_out_s + OVERHEAD_S) / 60)
    watch = f"{runs} runs, {how.jobs} at a time, each observed for {how.look_out_s:g} s"
    say(f"{watch}: about {minutes} min if no stall ends earlier")
    with tempfile.TemporaryDirectory() as scratch:
        out = how.keep or Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        takens = await _played([(bare(it), probe) for it in agents for probe in PROBES], out, how, say)
        connects = [await _connect(it, out, how) for it in agents]
    played = [takens[first : first + len(PROBES)] for first in range(0, len(takens), len(PROBES))]
    # The endless reply first, then the probes in the order of a request.
    own, *others = [(total, call, *rest) for (total, *rest), call in zip(played, connects, strict=True)]
    turns = [Turned(knob, s, them) for (knob, s, _), them in zip(variants, others, strict=True)]
    return Measured(agent, how.look_out_s, own, tuple(turns))


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


async def _connect(agent: AgentSpec, out: Path, how: ProbeOptions) -> Taken:
    """Play the probe that needs no provider."""
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
        place = AgentContext(Path(folder) / "run", url, CANARY, "connect", mark, out / "connect.log", clock)
        try:
            async with open_agent(agent, place) as session:
                return await watched(session, hole, clock, agent.start_s, how.look_out_s)
        except AgentError as wrong:
            return Taken(CONNECT, skipped=str(wrong))
        finally:
            end_all(lambda: carrying(mark), threading.Event().wait)
