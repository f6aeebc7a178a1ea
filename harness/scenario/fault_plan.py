"""The fault plan of a run: plain data, which can be shrunk and replayed."""

from dataclasses import dataclass, replace
from typing import Literal

from wedgehog.fake_llm.observer import Point
from wedgehog.harness.faults.base import Fault, WireFault
from wedgehog.harness.scenario.trigger import Trigger

StickTo = Literal["call", "connection", "conversation", "link"]

BREAK_PAUSE_S = 0.2
"""Real networks deliver, pause, then break: the client has time to read what came before."""
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
    pause_s: float = 0.0
    """Real seconds between the bytes before the fault and a fault that breaks off a reply in its middle."""

    def paused(self) -> "PlannedFault":
        """The same line with the usual pause, where it breaks off replies and names no `after_s` of its own."""
        breaks = isinstance(self.fault, WireFault) and self.fault.ends in ("fin", "rst")
        return replace(self, pause_s=BREAK_PAUSE_S) if breaks and self.trigger.after_s is None else self

    def pause_at(self, reply: Point, byte: int) -> float:
        """The pause at this byte of a reply; none near a stream's end, where a client may have all that it needs."""
        ends = reply.frame_ends
        last = ends[-3] if len(ends) > 2 else 0 if ends else reply.body
        return self.pause_s if 0 < byte < last else 0.0

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
        """`stall on llm at step 2 of turn 1`"""
        return f"{self.fault.name} on {self.link} at step {self.trigger.step} of turn {self.trigger.turn}"


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """All lines, in the order written; a fault's index here is its number in the history."""

    faults: tuple[PlannedFault, ...] = ()

    def scaled(self, factor: float) -> "FaultPlan":
        """The same plan, faster."""
        return FaultPlan(tuple(planned.scaled(factor) for planned in self.faults))

    def strikes(self, link: str) -> bool:
        """Whether bytes on this link may be harmed."""
        return any(it.link == link and isinstance(it.fault, WireFault) for it in self.faults)

    def hits_requests(self, link: str) -> bool:
        """Whether a request on this link may be faulty."""
        return any(it.link == link and it.trigger.in_request for it in self.faults)

    def resets(self, link: str) -> bool:
        """Whether a connection of this link may end with RST."""
        faults = (it.fault for it in self.faults if it.link == link)
        return any(isinstance(fault, WireFault) and fault.ends == "rst" for fault in faults)
