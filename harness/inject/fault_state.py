"""What the nemesis keeps in mind: each planned fault while the run goes on, and what became of struck replies."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.inject.written import Written
from wedgehog.harness.network.base import Strike
from wedgehog.harness.scenario.plan import ALWAYS, PlannedFault

LimitKind = Literal["stalled", "cut", "slowed"]


@dataclass(frozen=True, slots=True)
class PartialDelivery:
    """A reply was let through up to body byte `at` only."""

    at: int
    how: LimitKind


@dataclass(frozen=True)
class CallFacts:
    """A request for the model that has found its place."""

    place: CallPosition
    model: str
    body_bytes: int


@dataclass
class ArmedFault:
    """A strike on the network, the call whose reply it limits at which body byte, and whether it has proved itself."""

    strike: Strike
    call: int | None = None
    at: int | None = None
    proved: bool = False


@dataclass
class FaultState:
    """One planned fault while the run goes on."""

    index: int
    planned: PlannedFault
    matched: int = 0
    fired: int = 0
    sticky: bool = False
    due: bool = False
    """A refusal that is being armed, or was."""
    port: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while the link's port is being closed."""
    conns: set[int] = field(default_factory=set)
    strikes: list[ArmedFault] = field(default_factory=list)
    healed: asyncio.Event = field(default_factory=asyncio.Event)
    healing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held until all is healed, so that whoever comes second waits for it too."""
    released: set["asyncio.Task[None]"] = field(default_factory=set)
    """Strikes that are being healed before the fault itself is."""

    @property
    def wire(self) -> WireFault | None:
        """The fault, where it is one of bytes."""
        fault = self.planned.fault
        return fault if isinstance(fault, WireFault) else None

    def means(self, nth: int, first: int | None = None) -> bool:
        """Whether it strikes the nth occasion of its kind: from its attempt (or `first`) on, `times` in all."""
        begin, times = self.planned.trigger.attempt if first is None else first, self.planned.times
        return begin <= nth and (times == ALWAYS or nth < begin + times)

    def meets_one_more(self, first: int | None = None) -> bool:
        """One more occasion has come: whether it is struck. What sticks to its link strikes every later one too."""
        self.matched += 1
        met = self.sticky or self.means(self.matched, first)
        self.sticky = met and self.planned.sticks_to == "link"
        return met


@dataclass
class StruckReply:
    """A reply that a fault limits: what is behind byte `at` is lost, or is late."""

    fault: WireFault
    state: FaultState
    at: int
    written: Written
    meant: bool = True
    """Whether the plan struck this reply; else it passes while its link is slow."""
    proved: bool = False
    settled: bool = False
    hung_up: bool = False

    def __post_init__(self) -> None:
        """What was written before is not late."""
        self._first = len(self.written.parts)

    @property
    def how(self) -> LimitKind:
        """What becomes of the rest."""
        return "slowed" if self.fault.slows else "stalled" if self.fault.ends == "stall" else "cut"

    def cut(self, now: float) -> PartialDelivery:
        """As much as can have arrived by now."""
        at = self.written.arrived(self.fault, self._first, now) if self.fault.slows else self.at
        return PartialDelivery(at, self.how)

    @property
    def whole_s(self) -> float:
        """When all that was written can have arrived."""
        return self.written.whole_s(self.fault, self._first)
