"""The board on which the nemesis plays: what is planned, which call stands where, what has fired, who is at work."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.harness.faults.base import Fault
from wedgehog.harness.faults.process_fault import ProcessFault
from wedgehog.harness.faults.reply_fault import ReplyFault
from wedgehog.harness.inject.fault_state import CallFacts, FaultState, PartialDelivery, StruckReply
from wedgehog.harness.inject.written import Written
from wedgehog.harness.network.base import NetworkError
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.event import FaultFired, Trouble
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.plan import FaultPlan, PlannedFault
from wedgehog.harness.scenario.trigger import AtCall, Trigger

SETTLE_S = 0.02
"""For a reply's last bytes to cross the loopback before its link is closed."""


class InjectorState:
    """Shared by those who strike and who heal."""

    def __init__(self, plan: FaultPlan, history: History, clock: Clock, messages: Sequence[PlannedFault] = ()) -> None:
        """Nothing is armed yet; `messages` are given when their triggers say so, and are no faults."""
        everything = enumerate((*plan.faults, *messages))
        self.states = [FaultState(index, planned) for index, planned in everything if not planned.on_pipe]
        self._faults = len(plan.faults)
        self.history, self.clock = history, clock
        self.calls: dict[int, CallFacts] = {}
        self.struck: dict[int, StruckReply] = {}
        self.written: defaultdict[int, Written] = defaultdict(Written)
        self.open_calls: set[int] = set()
        self.delivered: Callable[[int, PartialDelivery | None], None] = lambda call, cut: None
        self.broken = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()

    def is_fault(self, state: FaultState) -> bool:
        """Whether the plan has it; else it is a message."""
        return state.index < self._faults

    # ---- places

    def of_turn(self, turn: int) -> list[FaultState]:
        """Faults whose trigger lies in this turn."""
        return [state for state in self.states if state.planned.trigger.turn == turn]

    def at_main_call(self, call: int, steps_on: int = 0) -> list[FaultState]:
        """Faults whose trigger names the step of this call of the conversation, or the one so many `steps_on`."""
        facts = self.calls.get(call)
        if facts is None or facts.place.background:
            return []
        step = facts.place.step + steps_on
        return [state for state in self.of_turn(facts.place.turn) if state.planned.trigger.step == step]

    def hit(self, call: int, family: type[Fault], *, conn: int = 0, count: bool = True) -> list[FaultState]:
        """The faults of one family that this call meets; `count` on its first asking only."""
        facts = self.calls.get(call)
        return [] if facts is None else [s for s in self.states if self._meets(s, facts, family, conn, count)]

    def _meets(self, state: FaultState, facts: CallFacts, family: type[Fault], conn: int, count: bool) -> bool:
        planned = state.planned
        if not isinstance(planned.fault, family) or not isinstance(planned.trigger, AtCall) or state.healed.is_set():
            return False
        on_calls = planned.link == "llm" or isinstance(planned.fault, ProcessFault)
        if not on_calls:
            return False
        return state.sticky or conn in state.conns or self._matches(state, facts, count)

    def _matches(self, state: FaultState, facts: CallFacts, count: bool) -> bool:
        at, place = state.planned.trigger, facts.place
        if not isinstance(at, AtCall) or place.turn != at.turn or (at.on == "main") is bool(place.background):
            return False
        if at.model_name not in (None, facts.model):
            return False
        if at.on == "main" and place.step != at.step:
            fault = state.planned.fault
            return isinstance(fault, ReplyFault) and fault.repeats_on_later_steps and place.step >= at.step
        state.matched += count
        return state.means(state.matched)

    # ---- what happened

    def limit(self, call: int, state: FaultState, at: int, *, meant: bool = True) -> None:
        """From here on a fault of bytes limits this reply; one that was not meant stands back."""
        if state.wire is not None and (meant or call not in self.struck):
            self.struck[call] = StruckReply(state.wire, state, at, self.written[call], meant)

    def cut(self, struck: StruckReply) -> PartialDelivery:
        """As much of a limited reply as can have arrived by now."""
        return struck.cut(self.clock.now())

    def fired(self, state: FaultState, proof: str, *, call: int | None = None, let_through: int | None = None) -> None:
        """A fault struck, and this is the proof."""
        at = state.planned.trigger
        # What strikes the next request strikes whichever that is, a title's perhaps.
        named = None if at.before_request else at
        place: CallPosition | Trigger | None = named if call is None else self.calls[call].place
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
                slows=state.wire is not None and state.wire.slows,
            )
        )

    def break_(self, wrong: NetworkError) -> None:
        """The network failed us: the run is an error."""
        if not self.broken.is_set():
            self.broken.set()
            if not self.history.sealed:
                self.history.add(Trouble(what=f"the network failed: {wrong}"))

    # ---- work

    async def unless_healed(self, state: FaultState, seconds: float) -> None:
        """Let `seconds` pass, or less if the fault is healed before."""
        waits = [asyncio.ensure_future(self.clock.sleep(seconds)), asyncio.ensure_future(state.healed.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Let it be done beside us; a network that fails in it breaks the run."""
        task = asyncio.create_task(self.guarded(work))
        self.keep(task)
        task.add_done_callback(lambda _: work.close())  # where it was cancelled before it had begun
        return task

    def keep(self, task: "asyncio.Task[Any]") -> None:
        """Whoever ends the run ends this task too."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Do it; a network that fails in it breaks the run."""
        try:
            await work
        except NetworkError as wrong:
            self.break_(wrong)

    async def end_tasks(self) -> None:
        """End whoever is still at work."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
