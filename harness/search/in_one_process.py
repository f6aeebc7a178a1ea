"""Plays many scenarios one after the other in one process, in virtual time.

No process is started for a scenario, so hundreds of them take seconds. The agent's own modules are imported anew for
each one; packages that it uses are shared. So what fails here counts only once it also fails in a fresh process.
"""

import os
import shutil
import signal
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from pydantic import ValidationError

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.events.base import Event
from wedgehog.harness.record.history import History
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.record.store import RunStore
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.job import Job
from wedgehog.harness.run.judging.judge import judge
from wedgehog.harness.run.simulated.sim_player import why_not_in_virtual_time
from wedgehog.harness.run.simulated.sim_worker import play
from wedgehog.harness.run.skip_reasons import why_skipped
from wedgehog.harness.scenario.model import Scenario
from wedgehog.harness.search.player import Measures, Played, behaviour_of, measures_of
from wedgehog.harness.search.scripts import Drawn
from wedgehog.harness.sim.frozen import real_s
from wedgehog.harness.sim.world import SimWorld

CPU_LIMIT_S = 30
"""A scenario that computes longer is given up: its agent may loop without waiting. A busy machine does not count."""
IN_MEMORY = Path("/dev/shm")  # noqa: S108  each run makes a folder of its own in it
"""A run makes and removes ten folders, which costs more on a disk."""
RUN_SEED = 0
"""The stock seed of `wedgehog run`, whatever the seed of the search: a saved scenario plays as it was found."""
PACKAGES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
OURS = (str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / "fake_llm"))


class UnwrittenRun(RunStore):
    """Keeps a run's events in memory: what fails is played again in a process that writes them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder, self.hides, self._by_size = folder, {}, {}
        self.events: list[Event] = []
        self._texts: dict[str, bytes] = {}

    def write(self, event: Event) -> None:
        """Keep one event."""
        self.events.append(event)

    def _kept_body(self, name: str) -> bytes:
        return self._texts[name]

    def _write_body(self, name: str, body: bytes) -> None:
        self._texts[name] = body

    def close(self, judgement: Judgement | None = None) -> None:
        """No effect: nothing is open."""


class InOneProcess:
    """Plays scenarios on some agents."""

    def __init__(
        self,
        world: SimWorld,
        agents: Sequence[tuple[AgentSpec, ControlFacts]],
        stuck: Callable[[Drawn], None],
    ) -> None:
        """`agents` are the agents with what their control runs showed; `stuck` gets a scenario that does not end."""
        self._world, self._agents, self._stuck = world, agents, stuck
        self._loaded = set(sys.modules)

    def play(self, document: Drawn) -> Played | None:
        """Play a scenario on every agent; None: it is no legal one."""
        try:
            scenario = Scenario.model_validate(document)
        except ValidationError:
            return None
        signal.signal(signal.SIGPROF, lambda *_: self._stuck(document))
        began_s, judgements, behaviour, measures = real_s(), [], [], Measures()
        for agent, control in self._agents:
            skipped = why_not_in_virtual_time(scenario, agent) or why_skipped(scenario, agent, control)
            if skipped:
                judgements.append(Judgement(scenario.name, agent.name, "sim", "nothing", skipped=skipped))
                continue
            judgement, history = self._judged(scenario, agent, control)
            judgements.append(judgement)
            if judgement.verdict != "error":
                behaviour.append(behaviour_of(judgement, history))
                measures = measures_of(history)
        return Played(document, tuple(judgements), real_s() - began_s, tuple(behaviour), measures)

    def _judged(self, scenario: Scenario, agent: AgentSpec, control: ControlFacts) -> tuple[Judgement, History]:
        folder = Path(tempfile.mkdtemp(prefix="wedgehog-", dir=IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None))
        job = Job(scenario, agent, control, RUN_SEED, "wedgehog-search", "sim", scratch=folder)
        store = UnwrittenRun(folder / "run")
        signal.setitimer(signal.ITIMER_PROF, CPU_LIMIT_S)
        try:
            play(self._world, job, store)
            history = History(events=store.events).seal()
            return judge(history, scenario, agent, control, briefly=True), history
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            self._forget_modules()
            shutil.rmtree(folder)

    def _forget_modules(self) -> None:
        """Let the next run import the agent's own modules again: they may keep what belongs to this run."""
        for name in sys.modules.keys() - self._loaded:
            if _is_of_the_agent(sys.modules[name]):
                del sys.modules[name]
            else:
                self._loaded.add(name)


def _is_of_the_agent(module: ModuleType) -> bool:
    """Whether a module is a Python file outside of all installed packages."""
    file = getattr(module, "__file__", None) or ""
    return file.endswith(".py") and not file.startswith((*PACKAGES, *OURS))
