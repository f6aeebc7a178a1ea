"""Proof of what has fired, and its end: every armed fault is taken away, whether or not it ever fired."""

import asyncio
import contextlib

from wedgehog.harness.inject.limited_reply import PartialDelivery
from wedgehog.harness.inject.state import ArmedFault, FaultState, InjectorState
from wedgehog.harness.network.base import NetworkError, Proof, Strike
from wedgehog.harness.record.event import FaultHealed, FaultUnproven, RunStarted


class Healer:
    """Waits for proofs, and heals."""

    def __init__(self, state: InjectorState) -> None:
        """There is nothing to heal yet."""
        self._state = state

    async def prove(self, state: FaultState, armed: ArmedFault) -> None:
        """Wait until an armed fault has fired. A slow one heals from now on: its proof is as late as its bytes."""
        if state.slows:
            self._heal_later(state)
        self.proved(state, armed, await armed.strike.fired(timeout_s=1e6))

    def proved(self, state: FaultState, armed: ArmedFault, proof: Proof | None) -> None:
        """Note the network's first proof that an armed fault has fired."""
        if proof is None or armed.proved:
            return
        armed.proved = True
        self._state.fired(state, proof.how, call=armed.call, let_through=armed.at)
        reply = self._state.limited.get(armed.call) if armed.call is not None else None
        if armed.call is not None and reply is not None and not reply.fault.slows:
            # Not settled: its connection is still held by the fault, and a hang-up would have to be recorded.
            reply.proved = True
            self._state.delivered(armed.call, self._state.cut(reply))
            self._release(armed.call)
        if not state.slows:
            self._heal_later(state)

    def back_later(self, state: FaultState, gone: Strike) -> None:
        """What is gone comes back when the fault is healed, at the latest."""
        state.armed.append(ArmedFault(gone, proved=True))
        self._heal_later(state)

    def hung_up(self, call: int) -> None:
        """The agent hung up on a limited reply: no more of it will arrive."""
        reply = self._state.limited[call]
        reply.hung_up = True
        if reply.fault.slows and not reply.settled:
            self._settle(call, self._state.cut(reply))
        self._release(call)

    async def once_arrived(self, call: int) -> None:
        """A reply on a slow link has been written: it is whole when its last byte can have arrived."""
        reply = self._state.limited[call]
        if not reply.settled:
            await self._state.unless_healed(reply.state, reply.whole_s - self._state.clock.now())
            if not reply.settled and not reply.state.healed.is_set():
                self._settle(call, None)

    def _release(self, call: int) -> None:
        """Heal a stall that is proved and that the agent has left: held ends add up on a link."""
        reply = self._state.limited[call]
        if reply.how != "stalled" or not (reply.proved and reply.hung_up):
            return
        for armed in [armed for armed in reply.state.armed if armed.call == call]:
            reply.state.armed.remove(armed)
            reply.state.released.add(self._state.spawn(armed.strike.heal()))

    def left(self, state: FaultState, armed: ArmedFault) -> None:
        """The client that waited has gone: the fault is taken away, because it makes others wait."""
        if armed in state.armed:
            state.armed.remove(armed)
            state.released.add(self._state.spawn(self._heal_one(state, armed)))

    async def _heal_one(self, state: FaultState, armed: ArmedFault) -> None:
        await armed.strike.heal()
        # An agent that ends at once is faster than the network's count: what was proved by now counts.
        self.proved(state, armed, await armed.strike.fired(timeout_s=0) or self._passed_under(state, armed))

    def _passed_under(self, state: FaultState, armed: ArmedFault) -> Proof | None:
        """What slows a link meets every reply that is written while it is on."""
        written = armed.call is not None and armed.call not in self._state.open_calls
        return Proof(armed.at, "the reply was written while it was on") if state.slows and written else None

    def _heal_later(self, state: FaultState) -> None:
        wait = state.planned.heals_in_s
        if wait is not None:
            own = state.planned.heal_after_s is None
            self._state.spawn(self.heal_in(state, wait + self._start_up_s(state) if own else wait))

    def _start_up_s(self, state: FaultState) -> float:
        """What the agent takes until it asks, by its control run: a link that is back by then was not down for it."""
        run = self._state.history.first(RunStarted)
        first = state.at.before_request and state.at.step == 1 and state.planned.link == "llm"
        return run.start_up_s if first and run is not None else 0.0

    async def heal_in(self, state: FaultState, seconds: float) -> None:
        """Heal it after so long, unless that is done before: agents that still wait then get what was late."""
        await self._state.unless_healed(state, seconds)
        await self.heal(state, in_turn=True)

    async def heal(self, state: FaultState, *, in_turn: bool = False) -> None:
        """Take the fault away; return when it is gone."""
        async with state.healing:
            if not state.healed.is_set():
                await self._take_away(state, in_turn)

    async def _take_away(self, state: FaultState, in_turn: bool) -> None:
        state.healed.set()
        for call, reply in self._state.limited.items():
            if reply.state is state and not reply.settled:
                # Proven or not, more than this can't have passed.
                self._settle(call, None if in_turn and reply.fault.slows else self._state.cut(reply))
        await asyncio.gather(*state.released)
        async with state.busy:
            left = list(state.armed)
        for armed in left:
            with contextlib.suppress(NetworkError):
                await self._heal_one(state, armed)
            self._unproven(state, armed)
        if state.fired:
            self._state.history.add(FaultHealed(fault=state.index, name=state.planned.fault.name))

    def _unproven(self, state: FaultState, armed: ArmedFault) -> None:
        if armed.call is None or armed.proved or self._state.history.sealed:
            return
        if state.wire is not None and state.wire.proof == "count":
            name = state.planned.fault.name
            self._state.history.add(FaultUnproven(fault=state.index, name=name, call=armed.call))

    def _settle(self, call: int, cut: PartialDelivery | None) -> None:
        """Say how much of a limited reply arrived, now that the fault is over or the agent has hung up."""
        self._state.limited[call].settled = True
        self._state.delivered(call, cut)
