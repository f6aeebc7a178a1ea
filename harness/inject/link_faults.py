"""Wire faults: armed on links, proved, and healed whether or not they ever fired."""

import asyncio
import contextlib
from dataclasses import dataclass

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.inject.fault_state import FaultState, PlacedStrike
from wedgehog.harness.inject.injector_state import SETTLE_S, InjectorState
from wedgehog.harness.inject.limited_reply import PartialDelivery
from wedgehog.harness.network.base import (
    Address,
    ConnectionGoneError,
    Downstream,
    Link,
    LinkBusyError,
    Proof,
    Strike,
    Upstream,
    WholeLink,
)
from wedgehog.harness.record.events.fault import FaultHealed
from wedgehog.harness.record.events.run import RunStarted
from wedgehog.harness.scenario.fault_plan import ALWAYS
from wedgehog.harness.scenario.trigger import BeforeRequest, Phase, Trigger


@dataclass(frozen=True, slots=True)
class Held:
    """A reply, a result, a response or a direction of a pipe, whose sender waits while a fault is armed on it."""

    link: Link | None
    conn: Address | None
    """Its connection, as the link's upstream knows it; None: it has none, and can only be held."""
    start: int
    """Bytes that the connection carries before its byte 0."""
    proof: str
    """What proves a fault that needs no network, because the sender waits."""
    call: int | None = None
    head: int = 0
    """Its first bytes, which the history does not count."""
    counts: bool = True
    """Whether the history tells the fault's byte."""


class LinkFaults(InjectorState):
    """The injector's state, and what is done with faults on links."""

    # ---- arming

    async def inject(self, state: FaultState, held: Held, byte: int, *, delayed: bool = False) -> PlacedStrike | None:
        """Inject a fault into what is held, at its byte `byte`, after the trigger's delay; return what is armed.

        The caller holds the sender anywhere before the byte, or at it where the fault begins at once (`at_byte`).
        `delayed`: the delay is over.
        """
        fault, at = state.wire, max(0, byte - held.head) if held.counts else None
        if not (delayed or await self.delay(state)) or fault is None:
            return None
        if fault.holds_s is not None:
            self.fired(state, held.proof, call=held.call, let_through=at)
            await self.unless_healed(state, fault.holds_s)
            return None
        if held.link is None or held.conn is None:
            return None
        if fault.closes_port:
            # It closes the connection of what is held, and that cancels the code that waits here.
            self.limit(held.call, state, at or 0, headers=held.head > 0)
            self.spawn(self.whole_link(state, held.link, held.call, at))
            await state.healed.wait()
            return None
        # A client that hangs up now cancels the code that waits here; what is half armed could not be healed.
        kind = WholeLink if fault.reach == "link" else Downstream
        work = self._arm(state, fault, held.link, kind(held.conn, held.start + byte), held.call, at)
        try:
            armed = await self._whole(self.keep(asyncio.create_task(work)))
        except ConnectionGoneError:
            self.no_target(state)
            return None
        if armed is not None:
            self.limit(held.call, state, at or 0, headers=held.head > 0)
            self.spawn(self.prove(state, armed))
        return armed

    async def _whole(self, arming: "asyncio.Task[PlacedStrike | None]") -> PlacedStrike | None:
        """Wait until it is armed; a caller that is cancelled does not cancel that."""
        try:
            return await asyncio.shield(arming)
        except asyncio.CancelledError:
            arming.add_done_callback(self._ended_alone)
            raise

    def _ended_alone(self, arming: "asyncio.Task[PlacedStrike | None]") -> None:
        """No caller waits any more: a failed network breaks the run, a missing connection is the client's doing."""
        wrong = None if arming.cancelled() else arming.exception()
        if wrong is not None and not isinstance(wrong, ConnectionGoneError | LinkBusyError):
            self.fail(wrong)

    async def whole_link(self, state: FaultState, link: Link, call: int | None = None, at: int | None = None) -> None:
        """Arm a fault on the whole link; where a reply is held at byte `at`, once those bytes have arrived."""
        if at:
            await self.clock.sleep(SETTLE_S)
        if state.wire is not None and (armed := await self._arm(state, state.wire, link, WholeLink(), call, at)):
            self.spawn(self.prove(state, armed))

    async def _arm(
        self,
        state: FaultState,
        fault: WireFault,
        link: Link,
        where: Downstream | Upstream | WholeLink,
        call: int | None,
        at: int | None,
    ) -> PlacedStrike | None:
        """Arm, unless the fault is healed by now: what was armed too late is taken away at once."""
        if state.healed.is_set():
            return None
        if fault.closes_port:
            async with state.busy:  # it fires before it is proved, so healing waits for it
                self.dropped_calls |= self.open_calls if state.planned.link == "llm" else set()
                state.armed.append(PlacedStrike(await link.strike(fault, where), link, call, at))
            return state.armed[-1]
        async with state.slowing if isinstance(where, WholeLink) else contextlib.nullcontext():
            # A link that is slow already would be twice as slow.
            slow = (it.strike for it in state.armed if it.link is link and isinstance(where, WholeLink))
            strike = next(slow, None) or await link.strike(fault, where)
            if state.healed.is_set():
                await strike.heal()
                return None
            state.armed.append(PlacedStrike(strike, link, call, at))
        for open_call in self.open_calls if self.slows_model(state) else ():
            self.limit(open_call, state, 0, meant=False)
        return state.armed[-1]

    # ---- before a request

    def next_requests(self, call: int, phase: Phase) -> list[FaultState]:
        """Faults that fire at the request after this reply, which are armed once."""
        after = self.at_main_call(call, steps_on=1)
        return [state for state in after if _is_before(state.at, phase) and not state.armed]

    def closes_after(self, call: int) -> bool:
        """Whether the reply to `call` must end its connection, so that the next request comes on a fresh one."""
        if call not in self.calls:
            return False
        place, _ = self.calls[call]
        following = ((place.turn, place.step + 1), (place.turn + 1, 1))
        triggers = (state.at for state in self.states)
        return any(_is_before(at, "request") and (at.turn, at.step) in following for at in triggers)

    def reply_ended(self, call: int) -> None:
        """Arm what must be armed before the next request."""
        for state in self.next_requests(call, "connect"):
            state.due = state.wire is not None and state.wire.closes_port
            self.spawn(self._once_delivered(state))

    async def _once_delivered(self, state: FaultState) -> None:
        """Refusing closes what is open: let the bytes that were just written arrive first."""
        await self.clock.sleep(SETTLE_S)
        await self.before_request(state)

    async def before_request(self, state: FaultState) -> None:
        """Arm a fault on the next request, or on the link before its next connection; once for each of its times."""
        link, at = self.links[state.planned.link], state.at.first_byte if state.at.in_request else None
        where = WholeLink() if at is None else Upstream(at)
        left = 10**6 if state.planned.times == ALWAYS else state.planned.times
        if state.wire is None or (armed := await self._arm(state, state.wire, link, where, None, at)) is None:
            return

        async def again(armed: PlacedStrike | None, left: int) -> None:
            while armed is not None and state.wire is not None:
                await self.prove(state, armed)
                left -= 1
                armed = await self._arm(state, state.wire, link, where, None, at) if left > 0 else None

        self.spawn(again(armed, 1 if at is None else left))

    # ---- proof

    async def prove(self, state: FaultState, armed: PlacedStrike) -> None:
        """Wait until an armed fault has fired. A slow one heals from now on: its proof is as late as its bytes."""
        if state.slows:
            self._heal_later(state)
        self.proved(state, armed, await armed.strike.fired(timeout_s=1e6))

    def proved(self, state: FaultState, armed: PlacedStrike, proof: Proof | None) -> None:
        """Note the network's first proof that an armed fault has fired."""
        if proof is None or armed.proved:
            return
        armed.proved = True
        self.fired(state, proof.how, call=armed.call, let_through=armed.at)
        reply = self.limited.get(armed.call) if armed.call is not None else None
        if armed.call is not None and reply is not None and not reply.fault.slows:
            # Not settled: its connection is still held by the fault, and a hang-up would have to be recorded.
            reply.proved = True
            self.delivered(armed.call, reply.cut(self.clock.now()))
            self._release(armed.call)
        if not state.slows:
            self._heal_later(state)

    def back_later(self, state: FaultState, gone: Strike) -> None:
        """A fault that ends by itself ends when it is healed, at the latest."""
        state.armed.append(PlacedStrike(gone, proved=True))
        self._heal_later(state)

    def closed(self, call: int) -> None:
        """The agent hung up on a limited reply: no more of it will arrive."""
        reply = self.limited[call]
        reply.hung_up = True
        if reply.fault.slows and not reply.settled:
            now = self.clock.now()
            # What closes at the moment at which the last byte arrives has it: our count of that moment is not exact.
            self._settle(call, None if now + SETTLE_S >= reply.whole_s else reply.cut(now))
        self._release(call)

    async def once_arrived(self, call: int) -> None:
        """A reply on a slow link has been written: it is whole when its last byte can have arrived."""
        reply = self.limited[call]
        if not reply.settled:
            await self.unless_healed(reply.state, reply.whole_s - self.clock.now())
            if not reply.settled and not reply.state.healed.is_set():
                self._settle(call, None)

    def _release(self, call: int) -> None:
        """Heal a stall that is proved and that the agent has left: held ends add up on a link."""
        reply = self.limited[call]
        if reply.how != "stalled" or not (reply.proved and reply.hung_up):
            return
        for armed in [armed for armed in reply.state.armed if armed.call == call]:
            reply.state.armed.remove(armed)
            reply.state.released.add(self.spawn(armed.strike.heal()))

    def left(self, state: FaultState, armed: PlacedStrike) -> None:
        """The client that waited has gone: the fault is taken away, because it makes others wait."""
        if armed in state.armed:
            state.armed.remove(armed)
            state.released.add(self.spawn(self._heal_one(state, armed)))

    async def _heal_one(self, state: FaultState, armed: PlacedStrike) -> None:
        await armed.strike.heal()
        # An agent that ends at once is faster than the network's count: what was proved by now counts.
        proof = await armed.strike.fired(timeout_s=0)
        if proof is None and state.slows and armed.call is not None and armed.call not in self.open_calls:
            proof = Proof(armed.at, "the reply was written while it was on")
        self.proved(state, armed, proof)

    def _heal_later(self, state: FaultState) -> None:
        wait_s = state.planned.heals_in_s
        if wait_s is None:
            return
        run = self.history.first(RunStarted)
        first = state.at.before_request and state.at.step == 1 and state.planned.link == "llm"
        if first and run is not None and state.planned.heal_after_s is None:
            # What the agent takes until it asks, by its control run: a link that is back by then was not down for it.
            wait_s += run.start_up_s
        self.spawn(self.heal_in(state, wait_s))

    # ---- the end

    async def heal_in(self, state: FaultState, seconds: float) -> None:
        """Heal it after so long, unless that is done before: agents that still wait then get what was late."""
        await self.unless_healed(state, seconds)
        await self.heal(state, in_turn=True)

    async def heal(self, state: FaultState, *, in_turn: bool = False) -> None:
        """Take the fault away; return when it is gone."""
        async with state.healing:
            if not state.healed.is_set():
                await self._take_away(state, in_turn)

    async def _take_away(self, state: FaultState, in_turn: bool) -> None:
        state.healed.set()
        for call, reply in self.limited.items():
            if reply.state is state and not reply.settled:
                # Proven or not, more than this can't have passed.
                self._settle(call, None if in_turn and reply.fault.slows else reply.cut(self.clock.now()))
        await asyncio.gather(*state.released)
        async with state.busy:
            left = list(state.armed)
        for armed in left:
            # A fault that stays on would be blamed on the agent.
            await self.guarded(self._heal_one(state, armed))
            counts = state.wire is not None and state.wire.proof == "count"
            if counts and armed.call is not None and not armed.proved and not self.history.sealed:
                self.unproven(state, armed.call)
        if state.fired:
            self.history.add(FaultHealed(fault=state.index, name=state.planned.fault.name))

    def _settle(self, call: int, cut: PartialDelivery | None) -> None:
        """Say how much of a limited reply arrived, now that the fault is over or the agent has hung up."""
        self.limited[call].settled = True
        self.delivered(call, cut)


def _is_before(at: Trigger, phase: Phase) -> bool:
    return isinstance(at, BeforeRequest) and at.phase == phase
