"""
fake ◀────    ✕    ──── agent        open connections: FIN; connect(): connection refused; back after `for_s`
"""

from dataclasses import dataclass

from wedgehog.harness.faults.base import PortFault, fault
from wedgehog.harness.faults.parameters import Forever, Seconds


@fault("down", family="wire")
@dataclass(frozen=True, slots=True)
class Down(PortFault):
    """The link is down for `for_s` seconds: open connections end with FIN, new ones are refused.

    Before a turn's first request that time begins when the agent has started.
    """

    for_s: Forever | Seconds = "forever"

    @property
    def heals_after_s(self) -> float | None:
        """It is back after `for_s`."""
        return None if self.for_s == "forever" else self.for_s
