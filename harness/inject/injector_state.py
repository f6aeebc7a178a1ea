"""The injector's state: planned faults, calls and their places, what is armed, and running tasks."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.harness.faults.base import Fault
from wedgehog.harness.faults.process_fault import ActorFault
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.inject.fault_state import FaultState, LimitedReply
from wedgehog.harness.inject.limited_reply import PartialDelivery, Written
from wedgehog.harness.network.base import Link, NetworkError
from wedgehog.harness.record.clock import Clock, first_of
from wedgehog.harness.record.events.fault import FaultFired, FaultUnproven
from wedgehog.harness.record.events.run import Note, Trouble
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.fault_plan import FaultPlan, PlannedFault
from wedgehog.harness.scenario.trigger import CHANNEL, AtCall, Trigger

T = TypeVar("T")
SETTLE_S = 0.02
"""For a reply's last bytes to cross the loopback before its link is closed."""

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
            return isinstance(fault, ReplyFault) and fault.repeats_on_later_steps and at.precedes(place)
        state.matched += count
        fires = state.fires_at(state.matched)
        if fires and state.planned.sticks_to == "conversation" and place.side is not None:
            state.sides.add(place.side)
        return fires

    # ---- what happened

    def limit(self, call: int | None, state: FaultState, at: int, *, meant: bool = True, headers: bool = False) -> None:
        """From here on a fault of bytes limits this reply; `meant` limits replace others, `headers` come before it."""
        earlier = self.limited.get(call) if call is not None else None
        if earlier is not None and earlier.state is state and state.slows:
            earlier.meant = earlier.meant or meant  # what comes before this byte is on the slow link already
            return
        if call is not None and state.wire is not None and (meant or earlier is None):
            written = self.written[call]
            headers = (headers or bool(written.parts)) and (earlier is None or earlier.headers)
            self.limited[call] = LimitedReply(state.wire, state, at, written, meant, headers)

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
                whole_link=state.wire is not None and state.wire.reach == "link",
                of_memory=state.planned.fault.of_memory,
                of_disk=state.planned.fault.of_disk,
                of_form=state.planned.fault.of_form,
                invents=state.planned.fault.invents,
            )
        )

    def unproven(self, state: FaultState, call: int) -> None:
        """The fault may have hit this call's reply, and nothing proves it."""
        self.history.add(FaultUnproven(fault=state.index, name=state.planned.fault.name, call=call))

    def no_target(self, state: FaultState) -> None:
        """The fault found nothing to hit."""
        self.history.add_unless_sealed(Note(what=f"{state.planned}: there was nothing to hit"))

    def fail(self, wrong: BaseException) -> None:
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
    on_calls = planned.link in ("llm", CHANNEL) or isinstance(planned.fault, ActorFault)
    return on_calls and isinstance(planned.trigger, AtCall) and isinstance(planned.fault, family)
