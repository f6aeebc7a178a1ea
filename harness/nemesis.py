"""Enacts the fault plan: arms each fault at its trigger, proves that it fired, and always heals.

Wire faults strike while the fake provider holds a reply at its gate; faults before a request are armed when the
reply before it has ended; reply faults change what the script says; actor faults are demanded from the runner.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from wedgehog.fake_llm.observer import Point
from wedgehog.fake_llm.position import Place
from wedgehog.fake_llm.reply import Answer
from wedgehog.harness.clock import Clock
from wedgehog.harness.event import FaultArmed, FaultFired, FaultHealed, FaultUnproven, Trouble
from wedgehog.harness.faults.answering import Context, ReplyFault
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.wire.cut import Cut as CutFault
from wedgehog.harness.faults.wire.down import Down
from wedgehog.harness.faults.wire.drip import Drip
from wedgehog.harness.faults.wire.latency import Latency
from wedgehog.harness.faults.wire.refuse import Refuse
from wedgehog.harness.faults.wire.stall import Stall
from wedgehog.harness.history import History
from wedgehog.harness.network.base import Downstream, Link, NetworkError, Proof, Spot, Strike, Upstream, WholeLink
from wedgehog.harness.plan import ALWAYS, FaultPlan, PlannedFault
from wedgehog.harness.spot import BEFORE_HEAD, spot

Demand = Literal["abort", "give_up"]
How = Literal["stalled", "cut", "dripping"]


@dataclass(frozen=True, slots=True)
class Cut:
    """A reply was let through up to body byte `at` only."""

    at: int
    how: How


SETTLE_S = 0.02
"""For a reply's last bytes to cross the loopback before its link is closed."""
EDITS = {"error_event", "early_end", "pings_only"}
"""Reply faults that fire only where the reply is streamed and long enough: the fake says whether they applied."""


@dataclass
class _Armed:
    """A strike on the network, the call whose reply it limits at which body byte, and whether it has proved itself."""

    strike: Strike
    call: int | None = None
    at: int | None = None
    proved: bool = False


@dataclass
class _State:
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
    strikes: list[_Armed] = field(default_factory=list)
    healed: asyncio.Event = field(default_factory=asyncio.Event)
    healing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held until all is healed, so that whoever comes second waits for it too."""
    released: set["asyncio.Task[None]"] = field(default_factory=set)
    """Strikes that are being healed before the fault itself is."""


@dataclass
class _Struck:
    """A reply of which only a part gets through."""

    how: How
    state: _State
    at: int
    since_s: float
    proved: bool = False
    settled: bool = False
    hung_up: bool = False


@dataclass(frozen=True)
class _CallFacts:
    place: Place
    model: str
    body_bytes: int


class Nemesis:
    """One run's harm. `delivered(call, cut)` and `demand(what)` are set by whoever listens."""

    def __init__(self, plan: FaultPlan, links: Mapping[str, Link], history: History, clock: Clock) -> None:
        """Nothing is armed before the first turn."""
        self._states = [_State(index, planned) for index, planned in enumerate(plan.faults)]
        self._links, self._history, self._clock = links, history, clock
        self._calls: dict[int, _CallFacts] = {}
        self._struck: dict[int, _Struck] = {}
        self._dropped: set[int] = set()
        self._pending: dict[tuple[int, int], _State] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._refused: set[int] = set()
        self.open_calls: set[int] = set()
        """Requests that have not got the end of their reply yet."""
        self._turn = 0
        self.delivered: Callable[[int, Cut | None], None] = lambda call, cut: None
        self.demands: asyncio.Queue[tuple[Demand, float | None]] = asyncio.Queue()
        self.broken = asyncio.Event()
        """Set when the network failed us: the run is an error and may stop."""

    def use(self, links: Mapping[str, Link]) -> None:
        """The links are open."""
        self._links = links

    # ---- turns

    async def before_turn(self, turn: int) -> None:
        """Arm what must be there before the turn's first request, and start its timers."""
        self._turn = turn
        for state in self._of_turn(turn):
            self._history.add(FaultArmed(fault=state.index, name=state.planned.fault.name, link=state.planned.link))
            trigger = state.planned.trigger
            if trigger.tool is not None:
                continue
            if trigger.before_request and trigger.step == 1:
                await self._guarded(self._before_request(state))
            elif self._timed(state):
                self._spawn(self._after(state))

    async def after_turn(self, turn: int) -> None:
        """Heal all that this turn's faults left, and settle how much of struck replies arrived."""
        for state in self._of_turn(turn):
            await self._heal(state)
        while not self.demands.empty():  # nobody was left to obey them
            self.demands.get_nowait()

    async def close(self) -> None:
        """Heal everything and end every watcher."""
        for state in self._states:
            await self._heal(state)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def keeps_requests_away(self) -> bool:
        """Whether an armed fault may be why no request arrives."""
        return any(
            state.strikes and not state.healed.is_set()
            for state in self._of_turn(self._turn)
            if state.planned.trigger.before_request or isinstance(state.planned.fault, Refuse | Down)
        )

    # ---- what the fake provider and the tools tell

    def arrived(self, call: int, place: Place, model: str, body_bytes: int) -> None:
        """A request for the model has found its place."""
        self.open_calls.add(call)
        self._calls[call] = _CallFacts(place, model, body_bytes)

    def alter(self, call: int, answer: Answer, context: Context, *, on_script: bool) -> Answer:
        """The answer as the plan's reply faults leave it (first those on the script's words, then on the reply)."""
        for state in self._hit(call, ReplyFault, count=on_script):
            fault = state.planned.fault
            if isinstance(fault, ReplyFault) and fault.on_script is on_script:
                answer = fault.on_answer(answer, context_at(context, state.planned.trigger.event))
                if fault.name not in EDITS:
                    self._fired(state, "the fake provider said it", call=call)
        return answer

    def edited(self, call: int, names: Sequence[str]) -> None:
        """These edits apply to the reply that starts now."""
        for state in self._hit(call, ReplyFault, count=False):
            if state.planned.fault.name in names:
                self._fired(state, "the fake provider changed the stream", call=call)

    def refused(self, call: int) -> None:
        """The provider's own validator refused this request: no wire fault strikes its answer."""
        self._refused.add(call)

    def ended(self, call: int, paid: bool) -> None:
        """A reply has been written: make what must happen before the next request."""
        self.open_calls.discard(call)
        struck = self._struck.get(call)
        if struck is not None and (struck.proved or isinstance(struck.state.planned.fault, Refuse | Down)):
            self.delivered(call, Cut(struck.at, struck.how))
        if paid:
            for state in self._next_requests(call, "connect"):
                state.due = isinstance(state.planned.fault, Refuse | Down)
                self._spawn(self._once_delivered(state))

    async def _once_delivered(self, state: _State) -> None:
        """Refusing closes what is open: let the bytes that were just written arrive first."""
        await self._clock.sleep(SETTLE_S)
        await self._before_request(state)

    def _next_requests(self, call: int, phase: str) -> list[_State]:
        """Faults that strike the request after this reply, which are armed once."""
        facts = self._calls.get(call)
        if facts is None or facts.place.background:
            return []
        return [
            state
            for state in self._of_turn(facts.place.turn)
            if state.planned.trigger.phase == phase
            and state.planned.trigger.step == facts.place.step + 1
            and not state.strikes
        ]

    def closes_after(self, call: int) -> bool:
        """Whether the reply to `call` must end its connection, so that the next request comes on a fresh one."""
        facts = self._calls.get(call)
        if facts is None:
            return False
        place = facts.place
        return any(
            state.planned.trigger.phase == "request"
            and (
                (state.planned.trigger.turn == place.turn and state.planned.trigger.step == place.step + 1)
                or (state.planned.trigger.turn == place.turn + 1 and state.planned.trigger.step == 1)
            )
            for state in self._states
        )

    def beacon(self, token: str, phase: Literal["started", "done"]) -> None:
        """A scripted command left its trace."""
        turn, step, tool = map(int, token.split("."))
        for state in self._of_turn(turn):
            at = state.planned.trigger
            if (at.tool, at.when, at.step) == (tool, phase, step) and not state.matched:
                state.matched += 1
                self._spawn(self._after(state))

    # ---- Harm, as the recorder sees it

    def limits(self, call: int) -> How | None:
        """How a fault limits this reply."""
        struck = self._struck.get(call)
        return struck.how if struck and not struck.settled else None

    def dropped(self, call: int) -> bool:
        """Whether a fault closed the link while this reply was under way: nobody hung up on it."""
        return call in self._dropped

    def closed(self, call: int) -> None:
        """The agent hung up on a limited reply: no more of it will arrive."""
        struck = self._struck[call]
        struck.hung_up = True
        if struck.how == "dripping":
            self._settle(call, Cut(self._dripped(struck), "dripping"))
        self._release(call)

    def _release(self, call: int) -> None:
        """A stall that proved itself and that nobody waits at any more is healed: held ends add up on a link."""
        struck = self._struck[call]
        if struck.how != "stalled" or not (struck.proved and struck.hung_up):
            return
        for armed in [armed for armed in struck.state.strikes if armed.call == call]:
            struck.state.strikes.remove(armed)
            struck.state.released.add(self._spawn(armed.strike.heal()))

    async def gate(self, point: Point) -> Sequence[int]:
        """Hold a reply until its bytes may pass, with the faults that this call meets armed."""
        stops: Sequence[int] = ()
        try:
            if point.at == BEFORE_HEAD:
                stops = await self._before_reply(point)
            elif state := self._pending.pop((point.call, point.at), None):
                await self._at_stop(state, point)
            # Last, because while this reply was held another one's limit may have been armed.
            written = point.carried + (point.head + point.at if point.at >= 0 else 0)
            await self._links["llm"].admit(point.conn.peer, written)
        except NetworkError as wrong:
            self._break(wrong)
            await asyncio.Event().wait()
        return stops

    async def _before_reply(self, point: Point) -> Sequence[int]:
        stops: list[int] = []
        if point.call in self._refused:
            return stops
        for state in self._overtaken(point.call):
            self._struck[point.call] = _Struck("cut", state, 0, self._clock.now())
            await state.healed.wait()
        for state in self._next_requests(point.call, "request") if point.body > 0 else ():
            # Armed while the last byte is held back, so that the agent cannot be faster than we are.
            self._pending[point.call, point.body - 1] = state
            stops.append(point.body - 1)
        for state in self._hit(point.call, WireFault, conn=point.conn.id):
            if point.call in self._struck:
                break
            at = spot(state.planned.trigger, point)
            if at is None:
                continue
            if at > BEFORE_HEAD and self._must_hold(state):
                self._pending[point.call, at] = state
                stops.append(at)
            else:
                await self._at_stop(state, point, at)
        return stops

    def _overtaken(self, call: int) -> list[_State]:
        """Refusals that a fast agent's request overtook on an open connection, which is about to close.

        They are due when the reply before has arrived; without a hold this one would slip through.
        """
        facts = self._calls.get(call)
        if facts is None or facts.place.background:
            return []
        return [
            state
            for state in self._of_turn(facts.place.turn)
            if state.due and state.planned.trigger.step == facts.place.step and not state.healed.is_set()
        ]

    def _must_hold(self, state: _State) -> bool:
        fault, trigger = state.planned.fault, state.planned.trigger
        at_once = isinstance(fault, Refuse | Down) or (isinstance(fault, Stall) and fault.for_s != "forever")
        return at_once or trigger.after_s is not None or (isinstance(fault, WireFault) and fault.armed == "at_spot")

    async def _at_stop(self, state: _State, point: Point, at: int | None = None) -> None:
        """The reply stands at the fault's spot (or before it, where that will do): strike."""
        fault, spot_at = state.planned.fault, point.at if at is None else at
        if state.healed.is_set():
            return
        if state.planned.trigger.phase == "request":
            await self._before_request(state)
            return
        if state.planned.trigger.after_s:
            await self._unless_healed(state, state.planned.trigger.after_s)
        if isinstance(fault, Stall) and fault.for_s != "forever":
            self._fired(state, "the fake provider held the reply", call=point.call, let_through=max(0, spot_at))
            await self._unless_healed(state, float(fault.for_s))
            return
        await self._strike_reply(state, point, spot_at)

    async def _strike_reply(self, state: _State, point: Point, at: int) -> None:
        fault = state.planned.fault
        if not isinstance(fault, WireFault):
            return
        if isinstance(fault, Refuse | Down):
            # It ends the very connection whose reply is held here, and with it whoever waits here to see it armed.
            self._struck[point.call] = _Struck("cut", state, max(0, at), self._clock.now())
            self._spawn(self._whole_link(state, fault, point.call, max(0, at)))
            await state.healed.wait()
            return
        where: Spot = Downstream(point.conn.peer, point.carried + (0 if at == BEFORE_HEAD else point.head + at))
        if isinstance(fault, Latency):
            where = WholeLink()
        # An agent that hangs up right now ends whoever waits here; half a strike would be healed by nobody.
        arming = asyncio.create_task(self._arm(state, fault, where, point.call, max(0, at)))
        self._tasks.add(arming)
        arming.add_done_callback(self._tasks.discard)
        armed = await asyncio.shield(arming)
        if armed is None:
            return
        how = limited_by(fault)
        if how is not None:
            self._struck[point.call] = _Struck(how, state, max(0, at), self._clock.now())
        self._spawn(self._prove(state, armed))
        self._sticks(state, point.conn.id)

    async def _arm(
        self, state: _State, fault: WireFault, where: Spot, call: int | None = None, at: int | None = None
    ) -> _Armed | None:
        """Strike, unless the fault is healed by now: what was armed too late is taken away at once."""
        if state.healed.is_set():
            return None
        if isinstance(fault, Refuse | Down):
            async with state.port:  # it hits before it is proved, so healing waits for it
                self._dropped |= self.open_calls if state.planned.link == "llm" else set()
                state.strikes.append(_Armed(await self._links[state.planned.link].strike(fault, where), call, at))
            return state.strikes[-1]
        strike = await self._links[state.planned.link].strike(fault, where)
        if state.healed.is_set():
            await strike.heal()
            return None
        state.strikes.append(_Armed(strike, call, at))
        return state.strikes[-1]

    async def _prove(self, state: _State, armed: _Armed) -> None:
        self._proved(state, armed, await armed.strike.fired(timeout_s=1e6))

    def _proved(self, state: _State, armed: _Armed, proof: Proof | None) -> None:
        """The network says how a strike came out; its first word counts."""
        if proof is None or armed.proved:
            return
        armed.proved = True
        self._fired(state, proof.how, call=armed.call, let_through=armed.at)
        struck = self._struck.get(armed.call) if armed.call is not None else None
        if armed.call is not None and struck is not None and struck.how != "dripping":
            # Not settled: its connection is still held by the fault, and a hang-up would have to be told.
            struck.proved = True
            self.delivered(armed.call, Cut(struck.at, struck.how))
            self._release(armed.call)
        self._heal_later(state)

    # ---- triggers

    def _of_turn(self, turn: int) -> list[_State]:
        return [state for state in self._states if state.planned.trigger.turn == turn]

    def _timed(self, state: _State) -> bool:
        at = state.planned.trigger
        on_call = at.byte is not None or at.event is not None or at.phase is not None or at.step > 1
        return state.planned.fault.family == "actor" or (
            not on_call and at.after_s is not None and isinstance(state.planned.fault, Refuse | Down | Latency)
        )

    def _hit(self, call: int, family: type[Any], *, conn: int = 0, count: bool = True) -> list[_State]:
        """The faults of one family that this call meets; `count` on its first asking only."""
        facts = self._calls.get(call)
        if facts is None:
            return []
        found = []
        for state in self._states:
            if not isinstance(state.planned.fault, family) or state.healed.is_set():
                continue
            if state.planned.link != "llm" or state.planned.trigger.tool is not None or self._timed(state):
                continue
            if state.planned.trigger.before_request:
                continue
            if state.sticky or conn in state.conns or self._matches(state, facts, count):
                found.append(state)
        return found

    def _matches(self, state: _State, facts: _CallFacts, count: bool) -> bool:
        at, place = state.planned.trigger, facts.place
        if place.turn != at.turn or (at.on == "main") is bool(place.background):
            return False
        if at.model_name not in (None, facts.model):
            return False
        if at.on == "main" and place.step != at.step:
            return self._endless(state, place)
        state.matched += count
        last = float("inf") if state.planned.times == ALWAYS else at.attempt + state.planned.times - 1
        return at.attempt <= state.matched <= last

    def _endless(self, state: _State, place: Place) -> bool:
        """Endless tool calls go on in every later step of the turn."""
        return state.planned.fault.name == "endless_tools" and place.step >= state.planned.trigger.step

    def _sticks(self, state: _State, conn: int) -> None:
        if state.planned.sticks_to == "connection":
            state.conns.add(conn)
        state.sticky = state.planned.sticks_to == "link"

    async def _before_request(self, state: _State) -> None:
        fault = state.planned.fault
        if not isinstance(fault, WireFault):
            return
        where: Spot = WholeLink()
        if state.planned.trigger.phase == "request":
            where = Upstream(state.planned.trigger.byte or 0)
        armed = await self._arm(state, fault, where, at=where.at if isinstance(where, Upstream) else None)
        left = 10**6 if state.planned.times == ALWAYS else state.planned.times
        if armed is not None:
            self._spawn(self._each_request(state, fault, armed, where, left if isinstance(where, Upstream) else 1))

    async def _each_request(self, state: _State, fault: WireFault, first: _Armed, where: Spot, left: int) -> None:
        armed: _Armed | None = first
        while armed is not None:
            await self._prove(state, armed)
            left -= 1
            armed = await self._arm(state, fault, where, at=first.at) if left else None

    async def _after(self, state: _State) -> None:
        """What a timer or a beacon set off."""
        if state.planned.trigger.after_s:
            await self._unless_healed(state, state.planned.trigger.after_s)
        if state.healed.is_set():
            return
        fault = state.planned.fault
        if fault.name in ("abort", "give_up"):
            self._fired(state, "the runner did it")
            await self.demands.put(("abort" if fault.name == "abort" else "give_up", state.planned.trigger.after_s))
        elif isinstance(fault, WireFault):
            await self._whole_link(state, fault)

    async def _whole_link(
        self, state: _State, fault: WireFault, call: int | None = None, at: int | None = None
    ) -> None:
        if at:
            await self._clock.sleep(SETTLE_S)
        armed = await self._arm(state, fault, WholeLink(), call, at)
        if armed is not None:
            await self._prove(state, armed)

    # ---- the end of harm

    def _fired(self, state: _State, proof: str, *, call: int | None = None, let_through: int | None = None) -> None:
        place = self._calls[call].place if call is not None else None
        at = state.planned.trigger
        state.fired += 1
        self._history.add(
            FaultFired(
                fault=state.index,
                name=state.planned.fault.name,
                link=state.planned.link,
                turn=place.turn if place else at.turn,
                step=place.step if place else at.step,
                attempt=place.attempt if place else at.attempt,
                call=call,
                proof=proof,
                bytes=let_through,
            )
        )

    def _heal_later(self, state: _State) -> None:
        fault = state.planned.fault
        wait = state.planned.heal_after_s
        if wait is None and isinstance(fault, Down) and fault.for_s != "forever":
            wait = float(fault.for_s)
        if wait is not None:
            self._spawn(self._heal_in(state, wait))

    async def _heal_in(self, state: _State, seconds: float) -> None:
        await self._unless_healed(state, seconds)
        await self._heal(state)

    async def _heal(self, state: _State) -> None:
        async with state.healing:
            if not state.healed.is_set():
                await self._take_away(state)

    async def _take_away(self, state: _State) -> None:
        state.healed.set()
        for call, struck in self._struck.items():
            if struck.state is state and not struck.settled:
                # Proven or not, more than this can't have passed.
                at = self._dripped(struck) if struck.how == "dripping" else struck.at
                self._settle(call, Cut(at, struck.how))
        await asyncio.gather(*state.released)
        async with state.port:
            strikes = list(state.strikes)
        for armed in strikes:
            with contextlib.suppress(NetworkError):
                await armed.strike.heal()
                # An agent that ends at once is faster than the network's count: what was proved by now counts.
                self._proved(state, armed, await armed.strike.fired(timeout_s=0) or self._passed_under(state, armed))
            self._unproven(state, armed)
        if state.fired:
            self._history.add(FaultHealed(fault=state.index, name=state.planned.fault.name))

    def _passed_under(self, state: _State, armed: _Armed) -> Proof | None:
        """A pace or a delay loses nothing: a reply that was written while it was on has met it."""
        slows = isinstance(state.planned.fault, Latency | Drip)
        written = armed.call is not None and armed.call not in self.open_calls
        return Proof(armed.at, "the whole reply was written while it was on") if slows and written else None

    def _unproven(self, state: _State, armed: _Armed) -> None:
        if armed.call is None or armed.proved or self._history.sealed:
            return
        if isinstance(state.planned.fault, Stall | CutFault):
            self._history.add(FaultUnproven(fault=state.index, name=state.planned.fault.name, call=armed.call))

    def _settle(self, call: int, cut: Cut) -> None:
        """Tell how much of a struck reply arrived, now that the fault is over or the agent has hung up."""
        self.delivered(call, cut)
        self._struck[call].settled = True

    def _dripped(self, struck: _Struck) -> int:
        fault = struck.state.planned.fault
        if not isinstance(fault, Drip) or not fault.every_s:
            return struck.at
        return struck.at + int((self._clock.now() - struck.since_s) / fault.every_s) * fault.bytes

    async def _unless_healed(self, state: _State, seconds: float) -> None:
        """Let `seconds` pass, or less if the fault is healed before."""
        waits = [asyncio.ensure_future(self._clock.sleep(seconds)), asyncio.ensure_future(state.healed.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    # ---- trouble

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # where it was cancelled before it had begun
        return task

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except NetworkError as wrong:
            self._break(wrong)

    def network_died(self) -> None:
        """Somebody saw that the network is gone."""
        self._break(NetworkError("it does not answer any more"))

    def _break(self, wrong: NetworkError) -> None:
        if not self.broken.is_set():
            self.broken.set()
            if not self._history.sealed:
                self._history.add(Trouble(what=f"the network failed: {wrong}"))


def limited_by(fault: WireFault) -> How | None:
    """How a wire fault on a reply limits what arrives of it."""
    if isinstance(fault, Stall):
        return "stalled"
    if isinstance(fault, CutFault):
        return "cut"
    return "dripping" if isinstance(fault, Drip) else None


def context_at(context: Context, event: int | None) -> Context:
    """The same context for a fault whose trigger names this event."""
    return replace(context, event=event)
