"""One planned fault while the run goes on, and the replies that it limits."""

import asyncio
from dataclasses import dataclass, field

from wedgehog.fake_llm.script.side_conversations import SideConversation
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.inject.limited_reply import LimitKind, PartialDelivery, Written
from wedgehog.harness.network.base import Link, Strike
from wedgehog.harness.scenario.fault_plan import ALWAYS, PlannedFault
from wedgehog.harness.scenario.trigger import Trigger


@dataclass
class PlacedStrike:
    """A strike, and its place: its link, the call whose reply it limits, and at which byte."""

    strike: Strike
    link: Link | None = None
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
    busy: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while it is in an action that healing must wait for: a port that closes, processes that are hit."""
    slowing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a whole link is made slow: a second call that meets the fault meanwhile shares what is armed."""
    conns: set[int] = field(default_factory=set)
    sides: set[SideConversation | None] = field(default_factory=set)
    """The side conversations that it sticks to."""
    armed: list[PlacedStrike] = field(default_factory=list)
    healed: asyncio.Event = field(default_factory=asyncio.Event)
    healing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held until all is healed, so that a second caller waits for it too."""
    kept: dict[str, str] = field(default_factory=dict)
    """What the fault has written down."""
    released: set["asyncio.Task[None]"] = field(default_factory=set)
    """Armed faults that are being healed before the planned fault itself is."""

    at: Trigger = field(init=False)
    """When it fires."""
    wire: WireFault | None = field(init=False)
    """The fault, where it is one of bytes."""

    def __post_init__(self) -> None:
        """The plan does not change, and each reply asks for these."""
        fault = self.planned.fault
        self.at, self.wire = self.planned.trigger, fault if isinstance(fault, WireFault) else None

    @property
    def lasts(self) -> bool:
        """Whether nothing heals it."""
        fault = self.planned.fault
        return isinstance(fault, ReplyFault) and fault.lasts

    @property
    def slows(self) -> bool:
        """Whether every byte arrives in the end."""
        return self.wire is not None and self.wire.slows

    @property
    def at_byte(self) -> bool:
        """Whether the sender must hold at the byte itself, because the fault begins as soon as it is armed."""
        return self.wire is not None and self.wire.begins == "at_target"

    def fires_at(self, nth: int, first: int | None = None) -> bool:
        """Whether it fires on the nth occasion of its kind: from its attempt (or `first`) on, `times` in all."""
        begin, times = self.at.attempt if first is None else first, self.planned.times
        return begin <= nth and (times == ALWAYS or nth < begin + times)

    def meets_one_more(self, first: int | None = None) -> bool:
        """Count one more occasion; whether it fires. A fault that sticks to its link fires on every later one too."""
        self.matched += 1
        met = self.sticky or self.fires_at(self.matched, first)
        self.sticky = met and self.planned.sticks_to == "link"
        return met


@dataclass
class LimitedReply:
    """A reply that a fault limits: what is behind byte `at` is lost, or is late."""

    fault: WireFault
    state: FaultState
    at: int
    written: Written
    meant: bool = True
    """Whether the plan names this reply; else it passes while its link is slow."""
    headers: bool = False
    """Whether its status line and headers come before the fault."""
    proved: bool = False
    settled: bool = False
    hung_up: bool = False

    def __post_init__(self) -> None:
        self._first = len(self.written.parts)

    @property
    def how(self) -> LimitKind:
        """What becomes of the rest."""
        return "slowed" if self.fault.slows else "stalled" if self.fault.ends == "stall" else "cut"

    def cut(self, now: float) -> PartialDelivery:
        """As much as can have arrived by now."""
        if not self.fault.slows:
            return PartialDelivery(self.at, self.how, self.headers)
        at, _ = self.written.played(self.fault, self._first, now)
        return PartialDelivery(at, self.how, self.headers, self.written.quiet_s(self.fault, self._first, now))

    @property
    def whole_s(self) -> float:
        """When all that was written can have arrived."""
        return self.written.played(self.fault, self._first)[1]
