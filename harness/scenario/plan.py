"""Where, when and what: a fault plan is plain data, hence it can be shrunk and replayed."""

from dataclasses import dataclass, field, replace
from typing import Literal

from wedgehog.harness.faults.base import Fault, WireFault
from wedgehog.harness.scenario.trigger import Trigger

StickTo = Literal["call", "connection", "link"]

ALWAYS = -1
"""`times: always`"""


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One line of a plan."""

    link: str
    trigger: Trigger
    fault: Fault
    times: int = 1
    sticks_to: StickTo = "call"
    heal_after_s: float | None = None
    """None: healed at the end of the turn."""

    @property
    def heals_in_s(self) -> float | None:
        """When it is over: as the plan says, else by itself."""
        own = self.fault.heals_after_s if isinstance(self.fault, WireFault) else None
        return own if self.heal_after_s is None else self.heal_after_s

    def scaled(self, factor: float) -> "PlannedFault":
        """The same line with every duration divided by `factor`."""
        trigger = self.trigger
        if trigger.after_s is not None:
            trigger = replace(trigger, after_s=trigger.after_s / factor)
        heal = None if self.heal_after_s is None else self.heal_after_s / factor
        return replace(self, trigger=trigger, fault=self.fault.scaled(factor), heal_after_s=heal)

    def __str__(self) -> str:
        """`stall on llm at 1.2`"""
        return f"{self.fault.name} on {self.link} at {self.trigger.turn}.{self.trigger.step}"


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """All lines, in the order written; a fault's index here is its number in the history."""

    faults: tuple[PlannedFault, ...] = field(default=())

    def scaled(self, factor: float) -> "FaultPlan":
        """The same plan, faster."""
        return FaultPlan(tuple(planned.scaled(factor) for planned in self.faults))

    def hits_requests(self, link: str) -> bool:
        """Whether a request on this link may be faulty."""
        return any(it.link == link and it.trigger.in_request for it in self.faults)

    def resets(self, link: str) -> bool:
        """Whether a connection of this link may end with RST."""
        faults = (it.fault for it in self.faults if it.link == link)
        return any(isinstance(fault, WireFault) and fault.ends == "rst" for fault in faults)
