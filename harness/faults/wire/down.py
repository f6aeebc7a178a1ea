"""
fake ◀────    ✕    ──── agent        open connections: FIN; connect(): connection refused; back after `for_s`
"""

from dataclasses import dataclass

from wedgehog.harness.faults.base import FaultPipe, Toxic, WireFault, fault
from wedgehog.harness.faults.parameters import Forever, Seconds


@fault("down", family="wire")
@dataclass(frozen=True, slots=True)
class Down(WireFault):
    """The link is down for `for_s` seconds: open connections end with FIN, new ones are refused.

    Whoever struck heals it after that time, which before a turn's first request begins when the agent has started.
    """

    for_s: Forever | Seconds = "forever"

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """End what is open; the network closes its listener too."""
        pipe.stop(0, "fin")

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """No toxic: the proxy is disabled."""
        return ()
