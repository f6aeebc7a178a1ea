"""How a campaign is run, and what its caller gets: progress, and its parts while it is open."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from wedgehog.harness.agents.spec import AgentSpec
from wedgehog.harness.campaign.plan import World
from wedgehog.harness.campaign.selection import Entry
from wedgehog.harness.network.choose import Mode
from wedgehog.harness.record.judgement import Judgement
from wedgehog.harness.sandbox.run_queue import processors

if TYPE_CHECKING:
    from wedgehog.harness.run.control import ControlFacts
    from wedgehog.harness.run.simulated.sim_player import SimPlayer


class Progress(Protocol):
    """Shows how far the campaign is."""

    def begins(self, what: str) -> None:
        """A control or a run begins."""

    def ended(self, what: str, judgement: Judgement | None) -> None:
        """It is over (None: a control, or stopped before its end)."""


class NoProgress:
    """Shows nothing, for a caller that shows its own progress."""

    def begins(self, what: str) -> None:
        """Show nothing."""

    def ended(self, what: str, judgement: Judgement | None) -> None:
        """Show nothing."""


MOST_JOBS = 6
"""More runs at once keep the harness itself busy, on any number of processors."""
MOST_PER_PROCESSOR = 3
"""More runs at once seldom find the processors idle."""


def usual_jobs() -> int:
    """How many runs are always played at once by default: one for each processor."""
    return min(MOST_JOBS, processors())


def most_jobs() -> int:
    """How many runs are played at once by default while the processors have time for more than `usual_jobs`."""
    return min(MOST_JOBS, MOST_PER_PROCESSOR * processors())


@dataclass(frozen=True)
class Options:
    """How a campaign is run."""

    out: Path
    network: Mode = "auto"
    jobs: int = field(default_factory=usual_jobs)
    seed: int = 0
    command_line: str = ""
    plugins: tuple[str, ...] = ()
    """The names after `--plugin`: a replay needs them too."""
    world: World = "live"
    turn_s: float | None = None
    """The bound of a turn for all agents, in real seconds."""
    fail_fast: bool = False
    """Whether to stop at the first failure."""
    beside: int = 0
    """How many more runs may be played at once: a search begins them beside runs that only wait."""
    until_certain: bool = False
    """Whether a turn is stopped once its number of calls surely breaks a bound: a search needs only the verdict."""
    most_doubted: int = 10
    """If more runs failed on a busy machine, none of them is played again: the agent fails for reasons of its own, and
    it would take long."""
    most_jobs: int = 0
    """If it is greater than `jobs`: so many runs are played at once while the processors have time for them."""


class FirstFailureError(Exception):
    """The first failure of a campaign that stops there; names the run."""


class OpenCampaign(NamedTuple):
    """A campaign whose network is open."""

    play: Callable[[Entry], Awaitable[Judgement]]
    control: Callable[[AgentSpec], Awaitable["ControlFacts"]]
    sim: "SimPlayer | None"
    """The worker process of the simulated world, if the campaign plays there."""
