"""
          ┌── bytes before the trigger pass ──┐
fake ─────┤ data: {"delta":"Hel"}   data: {"d ├────▶ agent        … then FIN or RST
          └───────────────────────────────────┘
fake ◀────    ✕    ──── agent        `down`, `refuse`: connect() is refused, open connections get FIN
"""

from typing import ClassVar, Literal

from wedgehog.harness.faults.base import Ending, FaultPipe, PortFault, Toxic, WireFault, fault
from wedgehog.harness.faults.parameters import Forever, Seconds


@fault("cut", family="wire")
class Cut(WireFault):
    """The body ends at the trigger; `then` is what the agent's socket gets: fin or rst."""

    usual: ClassVar[int] = 6
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


@fault("down", family="wire")
class Down(PortFault):
    """The link is down for `for_s` seconds: open connections end with FIN, new ones are refused.

    Before a turn's first request that time begins when the agent has started.
    """

    for_s: Forever | Seconds = "forever"

    @property
    def heals_after_s(self) -> float | None:
        """It is back after `for_s`."""
        return None if self.for_s == "forever" else self.for_s


@fault("refuse", family="wire")
class Refuse(PortFault):
    """The link's port is closed until the fault is healed: new connections are refused, open ones get FIN."""
