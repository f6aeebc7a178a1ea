"""What the injector keeps in mind: planned faults, the calls and their places, what is armed, and tasks that run."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.fake_llm.script.side_conversations import SideConversation
from wedgehog.harness.faults.base import Fault, WireFault
from wedgehog.harness.faults.process_fault import ActorFault
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.inject.limited_reply import LimitKind, PartialDelivery, Written
from wedgehog.harness.network.base import Link, NetworkError, Strike
from wedgehog.harness.record.clock import Clock, first_of
from wedgehog.harness.record.events.fault import FaultFired, FaultUnproven
from wedgehog.harness.record.events.run import Note, Trouble
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.trigger import ALWAYS, AtCall, FaultPlan, PlannedFault, Trigger

T = TypeVar("T")
SETTLE_S = 0.02
"""For a reply's last bytes to cross the loopback before its link is closed."""


@dataclass
class ArmedFault:
    """A fault on a link; the call whose reply it limits, and at which byte."""

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
    conns: set[int] = field(default_factory=set)
    sides: set[SideConversation | None] = field(default_factory=set)
    """The side conversations that it sticks to."""
    armed: list[ArmedFault] = field(default_factory=list)
    healed: asyncio.Event = field(default_factory=asyncio.Event)
    healing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held until all is healed, so that a second caller waits for it too."""
    kept: dict[str, str] = field(default_factory=dict)
    """What the fault has written down."""
    released: set["asyncio.Task[None]"] = field(default_factory=set)
    """Armed faults that are being healed before the planned fault itself is."""

    @property
    def at(self) -> Trigger:
        """When it fires."""
        return self.planned.trigger

    @property
    def wire(self) -> WireFault | None:
        """The fault, where it is one of bytes."""
        fault = self.planned.fault
        return fault if isinstance(fault, WireFault) else None

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
        return self.wire is not None and self.wire.begins == "at_spot"

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
        at = self.written.played(self.fault, self._first, now)[0] if self.fault.slows else self.at
        return PartialDelivery(at, self.how)

    @property
    def whole_s(self) -> float:
        """When all that was written can have arrived."""
        return self.written.played(self.fault, self._first)[1]


DeliveryListener = Callable[[int, PartialDelivery | None], None]
"""Called with a call and how much of its limited reply got through (None: all of it), once that is known."""


class InjectorState:
    """Shared by all that arms and heals. Tasks that are spawned here end with the run."""

    def __init__(
        self,
        plan: FaultPlan,
        links: Mapping[str, Link],
        history: History,
        clock: Clock,
        messages: Sequence[PlannedFault],
        delivered: DeliveryListener,
    ) -> None:
        """Nothing is armed yet; `messages` are given when their triggers say so, and are no faults."""
        self.states = [FaultState(index, planned) for index, planned in enumerate((*plan.faults, *messages))]
        self._families: dict[type[Fault], list[FaultState]] = {}
        self.plan, self.links = plan, links
        self.history, self.clock = history, clock
        self.calls: dict[int, tuple[CallPosition, str]] = {}
        """The place and the model of each request."""
        self.limited: dict[int, LimitedReply] = {}
        self.written: defaultdict[int, Written] = defaultdict(Written)
        self.open_calls: set[int] = set()
        self.dropped_calls: set[int] = set()
        """Calls whose replies were under way when a fault closed their link."""
        self.delivered = delivered
        self.broken = asyncio.Event()
        self.turn = 0
        """The one that began last."""
        self._tasks: set[asyncio.Task[Any]] = set()

    # ---- places

    def of_turn(self, turn: int) -> list[FaultState]:
        """Faults whose trigger lies in this turn."""
        return [state for state in self.states if state.at.turn == turn]

    def at_main_call(self, call: int, steps_on: int = 0) -> list[FaultState]:
        """Faults whose trigger names the step of this call of the conversation, or the one so many `steps_on`."""
        place, _ = self.calls.get(call, (None, ""))
        if place is None or place.background:
            return []
        return [state for state in self.of_turn(place.turn) if state.at.step == place.step + steps_on]

    def of_call(self, call: int, family: type[Fault], *, conn: int = 0, count: bool = True) -> list[FaultState]:
        """The faults of one family that this call meets; `count` on its first asking only."""
        if call not in self.calls:
            return []
        place, model = self.calls[call]
        return [state for state in self._on_calls(family) if self._meets(state, place, model, conn, count)]

    def _on_calls(self, family: type[Fault]) -> list[FaultState]:
        """The faults of one family that a call can meet; each reply asks for them several times."""
        if family not in self._families:
            self._families[family] = [state for state in self.states if _can_meet_calls(state.planned, family)]
        return self._families[family]

    def _meets(self, state: FaultState, place: CallPosition, model: str, conn: int, count: bool) -> bool:
        at = state.at
        if not isinstance(at, AtCall) or state.healed.is_set():
            return False
        return (
            state.sticky
            or conn in state.conns
            or place.side in state.sides
            or self._matches(state, at, place, model, count)
        )

    def _matches(self, state: FaultState, at: AtCall, place: CallPosition, model: str, count: bool) -> bool:
        if state.lasts:
            return (place.turn, place.step) >= (at.turn, at.step)
        if not at.in_turn(place.turn) or at.model_name not in (None, model):
            return False
        if not at.names(place):
            fault = state.planned.fault
            later = at.on == "main" and not place.background and place.step >= at.step
            return later and isinstance(fault, ReplyFault) and fault.repeats_on_later_steps
        state.matched += count
        fires = state.fires_at(state.matched)
        if fires and state.planned.sticks_to == "conversation" and place.side is not None:
            state.sides.add(place.side)
        return fires

    # ---- what happened

    def limit(self, call: int | None, state: FaultState, at: int, *, meant: bool = True) -> None:
        """From here on a fault of bytes limits this reply; `meant` limits replace others."""
        earlier = self.limited.get(call) if call is not None else None
        if earlier is not None and earlier.state is state and state.slows:
            earlier.meant = earlier.meant or meant  # what comes before this byte is on the slow link already
            return
        if call is not None and state.wire is not None and (meant or earlier is None):
            self.limited[call] = LimitedReply(state.wire, state, at, self.written[call], meant)

    def slows_model(self, state: FaultState) -> bool:
        """Whether the link to the model is slow because of this fault."""
        of_replies = state.planned.link == "llm" and not state.at.in_request
        return state.slows and of_replies and bool(state.armed) and not state.healed.is_set()

    def slowed(self, call: int) -> None:
        """A reply is about to be written: what has slowed the link slows it too."""
        for state in filter(self.slows_model, self.states):
            self.limit(call, state, 0, meant=False)

    def fired(self, state: FaultState, proof: str, *, call: int | None = None, let_through: int | None = None) -> None:
        """A fault fired, and this is the proof."""
        at = state.at
        # What fires at the next request fires at any next request, a title's perhaps.
        named = None if at.before_request else at
        place: CallPosition | Trigger | None = named if call is None else self.calls[call][0]
        state.fired += 1
        self.history.add(
            FaultFired(
                fault=state.index,
                name=state.planned.fault.name,
                link=state.planned.link,
                turn=place.turn if place else at.turn,
                step=place.step if place else None,
                attempt=place.attempt if place else None,
                call=call,
                proof=proof,
                bytes=let_through,
                slows=state.slows,
            )
        )

    def unproven(self, state: FaultState, call: int) -> None:
        """The fault may have hit this call's reply, and nothing proves it."""
        self.history.add(FaultUnproven(fault=state.index, name=state.planned.fault.name, call=call))

    def no_target(self, state: FaultState) -> None:
        """The fault found nothing to hit."""
        self.history.add_unless_sealed(Note(what=f"{state.planned}: there was nothing to hit"))

    def fail(self, wrong: NetworkError) -> None:
        """The network failed: the run is an error."""
        if not self.broken.is_set():
            self.broken.set()
            self.history.add_unless_sealed(Trouble(what=f"the network failed: {wrong}"))

    # ---- tasks

    async def unless_healed(self, state: FaultState, seconds: float) -> None:
        """Let `seconds` pass, or less if the fault is healed before."""
        await first_of(self.clock.sleep(seconds), state.healed.wait())

    async def delay(self, state: FaultState) -> bool:
        """Let the trigger's own delay pass; whether the fault is to fire then."""
        if state.at.after_s:
            await self.unless_healed(state, state.at.after_s)
        return not state.healed.is_set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run it as a task; a network that fails in it breaks the run."""
        task = self.keep(asyncio.create_task(self.guarded(work)))
        task.add_done_callback(lambda _: work.close())  # where it was cancelled before it had begun
        return task

    def keep(self, task: "asyncio.Task[T]") -> "asyncio.Task[T]":
        """End this task with the run."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it; a network that fails in it breaks the run."""
        try:
            await work
        except NetworkError as wrong:
            self.fail(wrong)

    async def end_tasks(self) -> None:
        """Cancel the tasks that still run."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _can_meet_calls(planned: PlannedFault, family: type[Fault]) -> bool:
    on_calls = planned.link == "llm" or isinstance(planned.fault, ActorFault)
    return on_calls and isinstance(planned.trigger, AtCall) and isinstance(planned.fault, family)
