"""
fake ◀────    ✕    ──── agent        open connections: FIN; connect(): connection refused; back after `for_s`
"""

from wedgehog.harness.faults.base import PortFault, fault
from wedgehog.harness.faults.parameters import Forever, Seconds


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
