"""Plays a scenario with the real runner on any network, with an agent of this process, and keeps what came of it."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.parity.worlds.clients import TOOL, Client, Seen, Talk
from wedgehog.harness.agents.base import Outcome, Session, Stimulus
from wedgehog.harness.agents.context import AgentContext
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.agents.surroundings import prepare
from wedgehog.harness.network.base import Network
from wedgehog.harness.record.clock import Clock, WallClock
from wedgehog.harness.record.history import History
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import RunStore
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.job import Job
from wedgehog.harness.run.judging.judge import judge
from wedgehog.harness.run.runner import run
from wedgehog.harness.sandbox.owned import Tree
from wedgehog.harness.sandbox.started import Started
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.sim.clock import SimClock
from wedgehog.harness.sim.network import SimNetwork
from wedgehog.harness.sim.world import SimWorld

AT_ONCE = 12
SLOWER = {5: 1, 20: AT_ONCE}
"""A case that differs is played again so many times slower, and so many at once: a busy machine is late by seconds."""


class TalkSession(Session):
    """An agent as a task of this process, in the live world too: a process of its own would cost a second each."""

    def __init__(self, spec: AgentSpec, context: AgentContext, talk: Talk) -> None:
        super().__init__(spec, context, prepare(spec, context), Tree(""))
        self.started = Started((), "")
        self._talk = talk
        self._call: asyncio.Task[str] | None = None

    async def say(self, text: str, *, kind: Stimulus = "user", first: bool) -> Outcome:
        self._ended = "by itself"
        call = self._call = asyncio.create_task(self._talk.say(text))
        try:
            await asyncio.wait({call})
        finally:
            call.cancel()
        if call.cancelled():
            return Outcome(raised="CancelledError", ended=self._ended)
        if error := call.exception():
            return Outcome(raised=type(error).__name__, ended=self._ended)
        return Outcome(call.result(), ended=self._ended)

    def _in_turn(self) -> bool:
        return self._call is not None and not self._call.done()

    async def _abort(self) -> None:
        await self._stop(0)

    async def _stop(self, grace_s: float) -> None:
        if self._call is not None:
            self._call.cancel()


@dataclass
class Played:
    """A run that is over."""

    scenario: Scenario
    history: History
    judgement: Judgement
    seen: list[list[Seen]]


@dataclass
class Agent:
    """The client of a run, and the agent that the run makes of it."""

    client: Client
    talk: Talk | None = None


AGENT: ContextVar[Agent] = ContextVar("AGENT")
"""The agent of the run that this task plays."""


@asynccontextmanager
async def open_talk(spec: AgentSpec, context: AgentContext) -> AsyncIterator[Session]:
    """Takes the place of `open_agent`."""
    agent = AGENT.get()
    async with agent.client.opened(context.llm_url, context.time_scale) as agent.talk:
        yield TalkSession(spec, context, agent.talk)


async def play(scenario: Scenario, client: Client, network: Network, clock: Clock, folder: Path) -> Played:
    """Play it; the run's files lie below `folder`. `open_talk` must be in the context of `open_agent`."""
    agent = Agent(client)
    AGENT.set(agent)
    spec = AgentSpec(name="talk", wire=client.dialect.wire, callable="a:b", env={"SCALE": "{time_scale}"}, recover_s=0)
    control = ControlFacts(True, tools=frozenset({TOOL}), streams=client.dialect.stream, resumes=True)
    store = RunStore(folder / network.name / str(client) / scenario.name, folder / "bodies")
    job = Job(scenario, spec, control, 0, "parity", network.name, scratch=store.folder)
    try:
        history, _ = await run(job, network, store, clock)
    finally:
        store.close()
    return Played(scenario, history, judge(history, scenario, spec, control), agent.talk.seen if agent.talk else [])


Case = tuple[Scenario, Client]


async def play_live(cases: Iterable[Case], network: Network, folder: Path, at_once: int = AT_ONCE) -> list[Played]:
    """All of them on a real network, several at once, because most of their time is waiting."""
    free = asyncio.Semaphore(at_once)

    async def one(scenario: Scenario, client: Client) -> Played:
        async with free:
            return await play(scenario, client, network, WallClock(), folder)

    return await asyncio.gather(*(one(*case) for case in cases))


def play_simulated(cases: Iterable[Case], folder: Path) -> list[Played]:
    """All of them, each in a simulated world of its own."""

    async def one(scenario: Scenario, client: Client) -> Played:
        async with SimNetwork() as network:
            return await play(scenario, client, network, SimClock(), folder)

    with SimWorld() as world:
        return [world.run(partial(one, *case)) for case in cases]


def slower(case: Case, times: int) -> Case:
    """The same case with timers that a busy machine can keep."""
    scenario, client = case
    return scenario.model_copy(update={"time_scale": scenario.time_scale / times}), client
