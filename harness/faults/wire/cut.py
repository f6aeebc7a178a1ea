"""
          ┌── bytes before the trigger pass ──┐
fake ─────┤ data: {"delta":"Hel"}   data: {"d ├────▶ agent        … then FIN or RST
          └───────────────────────────────────┘
"""

from typing import Literal

from wedgehog.harness.faults.base import Ending, FaultPipe, Toxic, WireFault, fault


@fault("cut", family="wire")
class Cut(WireFault):
    """The body ends at the trigger; `then` is what the agent's socket gets: fin or rst."""

    then: Literal["fin", "rst"] = "fin"

    @property
    def ends(self) -> Ending:
        """With FIN or RST."""
        return self.then

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """Let `at` bytes pass, then close."""
        pipe.stop(at, self.then)

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """One limit: on a link that can get RST, `reset_peer` at toxicity 0 turns its FIN into RST."""
        return Toxic("slow_close", {"delay": 0}), Toxic("limit_data", {"bytes": at})
