"""The nemesis as others see it: turns begin and end, replies stand at the gate, tools leave traces."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from wedgehog.fake_llm.observer import ARRIVED, BEFORE_HEAD, Point
from wedgehog.fake_llm.reply import Answer
from wedgehog.fake_llm.script.position import CallPosition
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.process_fault import Demand, ProcessFault
from wedgehog.harness.faults.reply_fault import Context
from wedgehog.harness.inject.actors import ActorFaults
from wedgehog.harness.inject.arm import WireFaults
from wedgehog.harness.inject.disk_filler import Disk
from wedgehog.harness.inject.fault_state import CallFacts, FaultState, LimitKind, PartialDelivery
from wedgehog.harness.inject.heal import Healer
from wedgehog.harness.inject.replies import ReplyFaults
from wedgehog.harness.inject.resolve_offset import resolve_offset
from wedgehog.harness.inject.services import ServiceFaults
from wedgehog.harness.inject.state import SETTLE_S, InjectorState
from wedgehog.harness.inject.stdio import StdioFaults
from wedgehog.harness.inject.targets import KillServer, ProcessTargets, SessionFileTargets
from wedgehog.harness.network.base import Link, NetworkError
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.event import FaultArmed
from wedgehog.harness.record.history import History
from wedgehog.harness.scenario.plan import FaultPlan, PlannedFault
from wedgehog.harness.scenario.trigger import AfterStart, AtTool, BeforeRequest


class Injector:
    """One run's harm. `delivered(call, cut)` is set by whoever listens; `demands` are obeyed by whoever plays."""

    def __init__(
        self,
        plan: FaultPlan,
        links: Mapping[str, Link],
        history: History,
        clock: Clock,
        messages: Sequence[PlannedFault] = (),
    ) -> None:
        """Nothing is armed before the first turn. `messages` are to be given in the middle of others."""
        self._board = InjectorState(plan, history, clock, messages)
        self._healing = Healer(self._board)
        self._wire = WireFaults(self._board, self._healing, links)
        self._replies = ReplyFaults(self._board)
        self._actors = ActorFaults(self._board, self._healing)
        self.tools = ServiceFaults(self._board, self._healing, self._wire)
        self._actors.killing.server_killed = self.tools.server_killed
        self.pipes = StdioFaults(plan, self._board, self._healing)
        self._history = history
        self._pending: dict[tuple[int, int], list[FaultState]] = {}
        self._refused: set[int] = set()
        self._arrived: set[int] = set()
        self._turns: set[int] = set()

    def use(self, links: Mapping[str, Link]) -> None:
        """The links are open."""
        self._wire.links = links

    def aim(
        self, victims: ProcessTargets, sessions: SessionFileTargets, grace_s: float, disk: Disk | None = None
    ) -> None:
        """The agent is there; who can handle a signal has `grace_s` to end by it."""
        self._actors.filling.disk = disk
        self._actors.killing.victims, self._actors.killing.sessions = victims, sessions
        self._actors.killing.grace_s = grace_s

    def aim_at_server(self, kill: KillServer | None) -> None:
        """The tool host says how its server is killed."""
        self._actors.killing.kill_server = kill

    @property
    def frozen_s(self) -> float:
        """How long the agent has stood still so far: no bound of its time runs meanwhile."""
        return self._actors.freezing.frozen_s

    @property
    def dying_until_s(self) -> float:
        """Until then an agent that got a signal to end may still end by it: no deadline is judged before."""
        return self._actors.killing.dying_until_s

    @property
    def delivered(self) -> Callable[[int, PartialDelivery | None], None]:
        """Told when it is known how much of a struck reply got through (None: all of it)."""
        return self._board.delivered

    @delivered.setter
    def delivered(self, listener: Callable[[int, PartialDelivery | None], None]) -> None:
        self._board.delivered = listener

    @property
    def demands(self) -> "asyncio.Queue[tuple[Demand, float | None]]":
        """What whoever plays the turn must do now, with the time after which it was written to come."""
        return self._actors.demands

    @property
    def messages(self) -> "asyncio.Queue[int]":
        """Turns whose message whoever plays must give now, beside the one under way."""
        return self._actors.messages

    @property
    def broken(self) -> asyncio.Event:
        """Set when the network failed us: the run is an error and may stop."""
        return self._board.broken

    @property
    def open_calls(self) -> set[int]:
        """Requests that have not got the end of their reply yet."""
        return self._board.open_calls

    # ---- turns

    async def before_turn(self, turn: int) -> None:
        """Arm what must be there before the turn's first request, and start its timers."""
        self._turns.add(turn)
        self.tools.turn = turn
        for state in self._board.of_turn(turn):
            name, link = state.planned.fault.name, state.planned.link
            if self._board.is_fault(state):
                self._history.add(FaultArmed(fault=state.index, name=name, link=link))
            trigger = state.planned.trigger
            if isinstance(trigger, BeforeRequest) and trigger.step == 1:
                await self._board.guarded(self._wire.before_request(state))
            elif isinstance(trigger, AfterStart):
                self._board.spawn(self._after(state))
        await self.pipes.before_turn(turn)

    async def after_turn(self, turn: int) -> None:
        """Heal all that this turn's faults left, and settle how much of struck replies arrived."""
        for state in self._board.of_turn(turn):
            await self._healing.heal(state)
        self._turns.discard(turn)
        if not self._turns:
            await self.pipes.after_turn()
            self._actors.forget()

    async def close(self) -> None:
        """Heal everything and end every watcher."""
        for state in self._board.states:
            await self._healing.heal(state)
        await self.pipes.close()
        await self._board.end_tasks()

    @property
    def keeps_requests_away(self) -> bool:
        """Whether an armed fault may be why no request arrives."""
        return any(self._wire.keeps_requests_away(state) for turn in self._turns for state in self._board.of_turn(turn))

    async def _after(self, state: FaultState, *, settle: bool = False) -> None:
        """What a timer or a beacon set off; `settle`: what has just been written must arrive first."""
        if settle:
            await self._board.clock.sleep(SETTLE_S)
        if state.planned.trigger.after_s:
            await self._board.unless_healed(state, state.planned.trigger.after_s)
        if state.healed.is_set():
            return
        if state.wire is not None:
            await self._wire.whole_link(state, state.wire)
        else:
            await self._actors.act(state)

    # ---- what the fake provider and the tools tell

    def arrived(self, call: int, place: CallPosition, model: str, body_bytes: int) -> None:
        """A request for the model has found its place."""
        self._board.open_calls.add(call)
        self._board.calls[call] = CallFacts(place, model, body_bytes)

    def alter(self, call: int, answer: Answer, context: Context, *, on_script: bool) -> Answer:
        """The answer as the plan's reply faults leave it (first those on the script's words, then on the reply)."""
        return self._replies.alter(call, answer, context, on_script=on_script)

    def edited(self, call: int, names: Sequence[str]) -> None:
        """These edits apply to the reply that starts now."""
        self._replies.edited(call, names)

    def refused(self, call: int) -> None:
        """The provider's own validator refused this request: no wire fault strikes its answer."""
        self._refused.add(call)

    def ended(self, call: int, paid: bool) -> None:
        """A reply has been written: make what must happen before the next request."""
        self._board.open_calls.discard(call)
        struck = self._board.struck.get(call)
        if struck is not None and struck.fault.slows:
            self._board.spawn(self._healing.once_arrived(call))
        elif struck is not None and (struck.proved or struck.fault.closes_port):
            self._board.delivered(call, self._board.cut(struck))
        if paid:
            self._wire.reply_ended(call)
        self._actors.reply_ended(call)

    def closes_after(self, call: int) -> bool:
        """Whether the reply to `call` must end its connection, so that the next request comes on a fresh one."""
        return self._wire.closes_after(call)

    def beacon(self, token: str, phase: Literal["started", "done"]) -> "list[asyncio.Task[None]]":
        """A scripted command left its trace, or our tool host was called; what that sets off at once."""
        at_once = []
        self._actors.beacon(token, phase)
        turn, step, tool = map(int, token.split("."))
        for state in self._board.of_turn(turn):
            at = state.planned.trigger
            mine = isinstance(at, AtTool) and (at.tool, at.when, at.step) == (tool, phase, step)
            if mine and not self.tools.at_its_place(state) and not state.matched:
                state.matched += 1
                task = self._board.spawn(self._after(state, settle=self.tools.at_its_server(state)))
                at_once += [] if at.after_s else [task]
        if self.pipes.hears(token, phase):
            at_once.append(self._board.spawn(self.pipes.at_tool(token, phase)))
        return at_once

    # ---- Harm, as the recorder sees it

    def limits(self, call: int) -> LimitKind | None:
        """How a fault limits this reply."""
        struck = self._board.struck.get(call)
        return struck.how if struck and not struck.settled else None

    def dropped(self, call: int) -> bool:
        """Whether a fault closed the connection of this reply, or the healing of its stall did: nobody hung up."""
        struck = self._board.struck.get(call)
        healed = struck is not None and struck.how == "stalled" and struck.settled and not struck.hung_up
        return healed or (struck is not None and struck.how == "cut") or self._wire.dropped(call)

    def closed(self, call: int) -> None:
        """The agent hung up on a limited reply: no more of it will arrive."""
        self._healing.hung_up(call)

    async def gate(self, point: Point) -> Sequence[int]:
        """Hold a reply until its bytes may pass, with the faults that this call meets armed."""
        stops: Sequence[int] = ()
        try:
            if point.at == ARRIVED:
                return await self._on_arrival(point)
            if point.at == BEFORE_HEAD:
                stops = await self._before_reply(point)
            else:
                for state in self._pending.pop((point.call, point.at), ()):
                    await self._at_stop(state, point, point.at)
            # Last, because while this reply was held another one's limit may have been armed.
            carried = point.carried + (point.head + point.at if point.at >= 0 else 0)
            await self._wire.links["llm"].admit(point.conn.peer, carried)
            self._board.written[point.call].goes_on(self._board.clock.now(), point)
        except NetworkError as wrong:
            self._board.break_(wrong)
            await asyncio.Event().wait()
        return stops

    async def _before_reply(self, point: Point) -> Sequence[int]:
        stops: list[int] = []
        if point.call in self._refused:
            return stops
        for state in self._wire.overtaken(point.call):
            self._board.limit(point.call, state, 0)
            await state.healed.wait()
        for state in self._wire.next_requests(point.call, "request") if point.body > 0 else ():
            # Armed while the last byte is held back, so that the agent cannot be faster than we are.
            stops.append(self._hold(state, point, point.body - 1))
        for state in self._board.hit(point.call, WireFault, conn=point.conn.id):
            struck = self._board.struck.get(point.call)
            if struck is not None and struck.meant:
                break
            at = resolve_offset(state.planned.trigger, point)
            if at is None:
                continue
            if at > BEFORE_HEAD and self._wire.must_hold(state):
                stops.append(self._hold(state, point, at))
            else:
                await self._wire.at_stop(state, point, at)
        self._wire.slow(point.call)
        return [*stops, *await self._on_arrival(point)]

    async def _on_arrival(self, point: Point) -> Sequence[int]:
        """Harm to processes begins when the request is there, however late the reply is; once for each."""
        stops: list[int] = []
        if point.call in self._refused | self._arrived:
            return stops
        self._arrived.add(point.call)
        for state, at in self._actors.at_reply(point):
            if at > BEFORE_HEAD:
                stops.append(self._hold(state, point, at))
            else:
                await self._actors.at_stop(state, at)
        return stops

    def _hold(self, state: FaultState, point: Point, at: int) -> int:
        """Something happens when this reply has come to byte `at`; the same number."""
        self._pending.setdefault((point.call, at), []).append(state)
        return at

    async def _at_stop(self, state: FaultState, point: Point, at: int) -> None:
        if isinstance(state.planned.fault, ProcessFault):
            await self._actors.at_stop(state, at)
        else:
            await self._wire.at_stop(state, point)

    # ---- trouble

    def failed(self, wrong: NetworkError) -> None:
        """A link failed whoever writes to it."""
        self._board.break_(wrong)

    def network_died(self) -> None:
        """Somebody saw that the network is gone."""
        self._board.break_(NetworkError("it does not answer any more"))
