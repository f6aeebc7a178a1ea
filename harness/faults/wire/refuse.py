"""
fake ◀────    ✕    ──── agent        connect(): connection refused
"""

from dataclasses import dataclass

from wedgehog.harness.faults.base import PortFault, fault


@fault("refuse", family="wire")
@dataclass(frozen=True, slots=True)
class Refuse(PortFault):
    """Nobody listens at the link's port until the fault is healed; connections that are open get FIN."""
