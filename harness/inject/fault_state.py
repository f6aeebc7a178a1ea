"""What the nemesis keeps in mind: each planned fault while the run goes on, and what became of struck replies."""

import asyncio
from dataclasses import dataclass, field
from typing import Literal

from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.wire.cut import Cut as CutFault
from wedgehog.harness.faults.wire.drip import Drip
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.network.base import Strike
from wedgehog.harness.scenario.plan import ALWAYS, PlannedFault

Demand = Literal["abort", "give_up"]
LimitKind = Literal["stalled", "cut", "dripping"]


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
    """A reply of which only a part gets through."""

    how: LimitKind
    state: FaultState
    at: int
    since_s: float
    proved: bool = False
    settled: bool = False
    hung_up: bool = False

    def passed_by(self, now: float) -> int:
        """Body bytes that can have got through by `now`."""
        fault = self.state.planned.fault
        if self.how != "dripping" or not isinstance(fault, Drip) or not fault.every_s:
            return self.at
        return self.at + int((now - self.since_s) / fault.every_s) * fault.bytes


def limited_by(fault: WireFault) -> LimitKind | None:
    """How a wire fault on a reply limits what arrives of it."""
    if isinstance(fault, Stall):
        return "stalled"
    if isinstance(fault, CutFault):
        return "cut"
    return "dripping" if isinstance(fault, Drip) else None
