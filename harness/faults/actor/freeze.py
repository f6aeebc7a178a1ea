"""A process that gets no time: a paused container, a laptop asleep, a machine that swaps."""

from dataclasses import dataclass
from typing import Literal

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.parameters import Positive
from wedgehog.harness.faults.process_fault import Hands, ProcessFault


@fault("freeze", family="actor")
@dataclass(frozen=True, slots=True)
class Freeze(ProcessFault):
    """Processes stand still for `for_s` seconds (SIGSTOP, then SIGCONT): the agent's `tree` or `leader`, or the `tool`.

    Nothing is lost. While the agent itself stands still no time bound runs; of a tool that stands still it may be
    expected that somebody stops waiting.
    """

    for_s: Positive
    whom: Literal["tree", "leader", "tool"] = "tree"

    async def act(self, hands: Hands) -> None:
        """Stop them for a while."""
        await hands.freeze(self.whom, self.for_s)
