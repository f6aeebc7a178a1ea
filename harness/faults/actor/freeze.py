"""A process that does not run: a paused container, a laptop asleep, a machine that swaps."""

from typing import Literal

from wedgehog.harness.faults.base import fault
from wedgehog.harness.faults.parameters import Positive
from wedgehog.harness.faults.process_fault import Hands, ProcessFault


@fault("freeze", family="actor")
class Freeze(ProcessFault):
    """Processes stand still for `for_s` seconds (SIGSTOP, then SIGCONT): the agent's `tree` or `leader`, or the `tool`.

    Nothing is lost. No time bound counts while the agent itself stands still; a tool that stands still may exceed
    one.
    """

    for_s: Positive
    whom: Literal["tree", "leader", "tool"] = "tree"

    async def act(self, hands: Hands) -> None:
        """Stop them for a while."""
        await hands.freeze(self.whom, self.for_s)
