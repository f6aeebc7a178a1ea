"""One run to be made, with the bounds of its turns."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wedgehog.fake_llm.reply import ToolCall
from wedgehog.harness.agents.callables.warm_hosts import WarmHosts
from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.events.run import RunStarted
from wedgehog.harness.run.control import ControlFacts
from wedgehog.harness.run.count_bounds import count_bounds
from wedgehog.harness.run.deadline import Bounds
from wedgehog.harness.run.recovery import recovery_calls
from wedgehog.harness.scenario.model import Scenario

if TYPE_CHECKING:
    from wedgehog.harness.agents.pages.browser import Browser

TURN_S = 120.0
"""The stock bound of a turn, where neither the spec nor the scenario names one."""


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
    """Where the run's own folder is made and removed; None: the system's place for such folders."""
    until_certain: bool = False
    """Whether a turn is stopped once its number of calls surely breaks a bound."""
    words: str = ""
    """A part of the seed of its words: they differ from those of an earlier run, which a database may still hold."""
    browser: "Callable[[], Browser] | None" = None
    """Gives the browser of the agent's user; not in virtual time."""
    warm: WarmHosts | None = None
    """Forks a callable's process; not in virtual time."""

    @property
    def time_scale(self) -> float:
        """The scenario's, if the agent can be run faster; else 1. Virtual time is not scaled."""
        return 1.0 if self.network_name == "sim" else self.live_time_scale

    @property
    def live_time_scale(self) -> float:
        """How much faster than the script the same run would be live; the commands of tools are not."""
        return self.scenario.time_scale if self.agent.scales_time else 1.0

    @property
    def random_seed(self) -> str:
        """The seed of a simulated run's random numbers.

        Two scenarios have different seeds, so that their results are
        independent, as the gate's tests assume. Two agents have the same seed, so that only the agents differ.
        """
        return f"{self.seed} {self.scenario.seed or self.scenario.name}"

    @property
    def turn_s(self) -> float:
        """The smaller of the spec's and the scenario's turn bound, in real seconds; the control run has the stock one.

        The control run shows how long the agent takes to exit, whatever its limit is.
        """
        asked = (self.scenario.invariants.get("turn_deadline") or {}).get("turn_s")
        mine = float(asked) / self.time_scale if asked is not None else None
        limit = self.agent.limits.turn_s if self.control else None
        return min([bound for bound in (mine, limit) if bound is not None], default=TURN_S)

    @property
    def bounds(self) -> Bounds:
        """The bounds of its turns."""
        control = self.control or ControlFacts(False)
        counts = count_bounds(self.scenario, self.agent, until_certain=self.until_certain)
        return Bounds(self.turn_s, self.agent.start_s, control.start_up_s, control.exit_s, counts)

    @property
    def recovery_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of its recovery message."""
        return recovery_calls(self.scenario, self.control)

    def started(self, clock: Clock) -> RunStarted:
        """The first event of the run."""
        control = self.control
        return RunStarted(
            scenario=self.scenario.name,
            agent=self.agent.name,
            network=self.network_name,
            time_scale=self.time_scale,
            started=clock.wall().isoformat(),
            error_patterns=self.agent.errors,
            error_at_path=self.agent.error_at_path,
            usual=tuple(sorted(control.usual)) if control else (),
            carries_nonces=control is None or (control.passed and not control.later_hidden),
            resumes=bool(control and control.resumes) or self.agent.says_it_resumes,
            usual_refusals=tuple(sorted(control.refusals)) if control else (),
            start_up_s=control.start_up_s if control else 0.0,
            exit_s=control.exit_s if control else 0.0,
            turns=len(self.scenario.turns),
            turn_s=self.turn_s,
            price_as=self.agent.price_as,
            recovery_tools=tuple(call.name for call in self.recovery_calls),
        )
