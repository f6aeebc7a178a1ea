"""Harm to bytes: on a reply while the fake provider holds it at its gate, on a request before it comes."""

import asyncio
from collections.abc import Mapping

from wedgehog.fake_llm.observer import BEFORE_HEAD, Point
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.inject.fault_state import ArmedFault, FaultState
from wedgehog.harness.inject.heal import Healer
from wedgehog.harness.inject.resolve_offset import resolve_offset
from wedgehog.harness.inject.state import SETTLE_S, InjectorState
from wedgehog.harness.network.base import Downstream, Link, Target, Upstream, WholeLink
from wedgehog.harness.scenario.plan import ALWAYS
from wedgehog.harness.scenario.trigger import AtChat, BeforeRequest, Phase, Trigger


class WireFaults:
    """Arms wire faults on the links."""

    def __init__(self, board: InjectorState, healing: Healer, links: Mapping[str, Link]) -> None:
        """Nothing is armed yet."""
        self.links = links
        self._board, self._healing = board, healing
        self._dropped: set[int] = set()

    # ---- on a reply

    def must_hold(self, state: FaultState) -> bool:
        """Whether the fake must stop at the spot itself, because the harm begins as soon as it is armed."""
        at_once = state.wire is not None and state.wire.begins == "at_spot"
        return at_once or state.planned.trigger.after_s is not None

    async def at_stop(self, state: FaultState, point: Point, at: int | None = None) -> None:
        """The reply stands at the fault's spot (or before it, where that will do): strike."""
        fault, spot_at = state.wire, point.at if at is None else at
        if fault is None or state.healed.is_set():
            return
        if state.planned.trigger.in_request:
            await self.before_request(state)
            return
        if state.planned.trigger.after_s:
            await self._board.unless_healed(state, state.planned.trigger.after_s)
        if fault.holds_s is not None:
            let_through = max(0, spot_at)
            self._board.fired(state, "the fake provider held the reply", call=point.call, let_through=let_through)
            await self._board.unless_healed(state, fault.holds_s)
            return
        await self._strike_reply(state, fault, point, spot_at)

    async def _strike_reply(self, state: FaultState, fault: WireFault, point: Point, at: int) -> None:
        if fault.closes_port:
            # It ends the very connection whose reply is held here, and with it whoever waits here to see it armed.
            self._board.limit(point.call, state, max(0, at))
            self._board.spawn(self.whole_link(state, fault, point.call, max(0, at)))
            await state.healed.wait()
            return
        where: Downstream | WholeLink = Downstream(
            point.conn.peer, point.carried + (0 if at == BEFORE_HEAD else point.head + at)
        )
        if fault.reach == "link":
            where = WholeLink(where.conn, where.at)
        # An agent that hangs up right now ends whoever waits here; half a strike would be healed by nobody.
        arming = asyncio.create_task(self._arm(state, fault, where, point.call, max(0, at)))
        self._board.keep(arming)
        armed = await asyncio.shield(arming)
        if armed is None:
            return
        self._board.limit(point.call, state, max(0, at))
        self._board.spawn(self._healing.prove(state, armed))
        if state.planned.sticks_to == "connection":
            state.conns.add(point.conn.id)
        state.sticky = state.planned.sticks_to == "link"

    async def _arm(
        self, state: FaultState, fault: WireFault, where: Target, call: int | None = None, at: int | None = None
    ) -> ArmedFault | None:
        """Strike, unless the fault is healed by now: what was armed too late is taken away at once."""
        if state.healed.is_set():
            return None
        if fault.closes_port:
            async with state.port:  # it hits before it is proved, so healing waits for it
                self._dropped |= self._board.open_calls if state.planned.link == "llm" else set()
                state.strikes.append(ArmedFault(await self.links[state.planned.link].strike(fault, where), call, at))
            return state.strikes[-1]
        if isinstance(where, WholeLink) and state.strikes:
            strike = state.strikes[0].strike  # the link is slow already: a second one would add up
        else:
            strike = await self.links[state.planned.link].strike(fault, where)
        if state.healed.is_set():
            await strike.heal()
            return None
        state.strikes.append(ArmedFault(strike, call, at))
        if fault.slows and state.planned.link == "llm":
            for open_ in self._board.open_calls:
                self._board.limit(open_, state, 0, meant=False)
        return state.strikes[-1]

    def slow(self, call: int) -> None:
        """A reply is about to be written: what has slowed the link slows it too."""
        for state in self._board.states:
            slows = state.wire is not None and state.wire.slows and not state.healed.is_set()
            if slows and state.planned.link == "llm" and state.strikes:
                self._board.limit(call, state, 0, meant=False)

    def dropped(self, call: int) -> bool:
        """Whether a fault closed the link while this reply was under way."""
        return call in self._dropped

    # ---- before a request

    def keeps_requests_away(self, state: FaultState) -> bool:
        """Whether it may be why no request arrives."""
        at = state.planned.trigger
        polled = isinstance(at, AtChat) and at.chat == "poll"
        away = at.before_request or polled or (state.wire is not None and state.wire.closes_port)
        return away and bool(state.strikes) and not state.healed.is_set()

    def next_requests(self, call: int, phase: Phase) -> list[FaultState]:
        """Faults that strike the request after this reply, which are armed once."""
        after = self._board.at_main_call(call, steps_on=1)
        return [it for it in after if _before(it.planned.trigger, phase) and not it.strikes]

    def overtaken(self, call: int) -> list[FaultState]:
        """Refusals that a fast agent's request overtook on an open connection, which is about to close.

        They are due when the reply before has arrived; without a hold this one would slip through.
        """
        return [state for state in self._board.at_main_call(call) if state.due and not state.healed.is_set()]

    def closes_after(self, call: int) -> bool:
        """Whether the reply to `call` must end its connection, so that the next request comes on a fresh one."""
        facts = self._board.calls.get(call)
        if facts is None:
            return False
        turn, step = facts.place.turn, facts.place.step
        following = ((turn, step + 1), (turn + 1, 1))
        triggers = (state.planned.trigger for state in self._board.states)
        return any(_before(at, "request") and (at.turn, at.step) in following for at in triggers)

    def reply_ended(self, call: int) -> None:
        """Make what must happen before the next request."""
        for state in self.next_requests(call, "connect"):
            state.due = state.wire is not None and state.wire.closes_port
            self._board.spawn(self._once_delivered(state))

    async def _once_delivered(self, state: FaultState) -> None:
        """Refusing closes what is open: let the bytes that were just written arrive first."""
        await self._board.clock.sleep(SETTLE_S)
        await self.before_request(state)

    async def before_request(self, state: FaultState) -> None:
        """Arm what the next request, or the next connection, is to meet."""
        fault = state.wire
        if fault is None:
            return
        where: Target = WholeLink()
        if state.planned.trigger.in_request:
            where = Upstream(resolve_offset(state.planned.trigger) or 0)
        armed = await self._arm(state, fault, where, at=where.at if isinstance(where, Upstream) else None)
        left = 10**6 if state.planned.times == ALWAYS else state.planned.times
        if armed is not None:
            work = self._each_request(state, fault, armed, where, left if isinstance(where, Upstream) else 1)
            self._board.spawn(work)

    async def _each_request(
        self, state: FaultState, fault: WireFault, first: ArmedFault, where: Target, left: int
    ) -> None:
        armed: ArmedFault | None = first
        while armed is not None:
            await self._healing.prove(state, armed)
            left -= 1
            armed = await self._arm(state, fault, where, at=first.at) if left else None

    # ---- on a link

    async def whole_link(
        self, state: FaultState, fault: WireFault, call: int | None = None, at: int | None = None
    ) -> None:
        """Strike everything on the link, now; where a call stands at byte `at`, once those bytes have arrived."""
        if at:
            await self._board.clock.sleep(SETTLE_S)
        await self._strike_there(state, fault, WholeLink(), call, at)

    async def strike_at(self, state: FaultState, fault: WireFault, spot: Downstream) -> None:
        """Strike one connection while whoever writes to it holds; return when it is armed."""
        await self._strike_there(state, fault, spot)

    async def _strike_there(
        self, state: FaultState, fault: WireFault, where: Target, call: int | None = None, at: int | None = None
    ) -> None:
        armed = await self._arm(state, fault, where, call, at)
        if armed is not None:
            self._board.spawn(self._healing.prove(state, armed))


def _before(at: Trigger, phase: Phase) -> bool:
    return isinstance(at, BeforeRequest) and at.phase == phase
