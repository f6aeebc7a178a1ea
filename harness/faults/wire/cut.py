"""
          ┌── bytes before the trigger pass ──┐
fake ─────┤ data: {"delta":"Hel"}   data: {"d ├────▶ agent        … then FIN or RST
          └───────────────────────────────────┘
"""

from dataclasses import dataclass
from typing import Literal

from wedgehog.harness.faults.base import Ending, FaultPipe, Toxic, WireFault, fault


@fault("cut", family="wire")
@dataclass(frozen=True, slots=True)
class Cut(WireFault):
    """The body ends at the trigger; `then` says how the agent's socket hears of it: fin or rst."""

    then: Literal["fin", "rst"] = "fin"

    @property
    def ends(self) -> Ending:
        """With FIN or RST."""
        return self.then

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """Let `at` bytes pass, then close."""
        pipe.stop(at, self.then)

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """One limit: a link that may see RST was born with `reset_peer` at toxicity 0, which turns FIN into RST."""
        return Toxic("slow_close", {"delay": 0}), Toxic("limit_data", {"bytes": at})
