"""
fake ◀────    ✕    ──── agent        connect(): connection refused
"""

from dataclasses import dataclass

from wedgehog.harness.faults.base import FaultPipe, Toxic, WireFault, fault


@fault("refuse", family="wire")
@dataclass(frozen=True, slots=True)
class Refuse(WireFault):
    """Nobody listens at the link's port until the fault is healed; connections that are open get FIN."""

    def on_pipe(self, pipe: FaultPipe, at: int) -> None:
        """A closed port has no pipe: the network closes its listener, and ends what is open."""
        pipe.stop(0, "fin")

    def toxics(self, at: int) -> tuple[Toxic, ...]:
        """No toxic: the proxy is disabled."""
        return ()
