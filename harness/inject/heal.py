"""Proof of what struck, and the end of it: every strike is taken away, whether or not it ever hit."""

import asyncio
import contextlib

from wedgehog.harness.inject.fault_state import ArmedFault, FaultState, PartialDelivery
from wedgehog.harness.inject.state import InjectorState
from wedgehog.harness.network.base import NetworkError, Proof, Strike
from wedgehog.harness.record.event import FaultHealed, FaultUnproven, RunStarted


class Healer:
    """Waits for proofs, and heals."""

    def __init__(self, board: InjectorState) -> None:
        """There is nothing to heal yet."""
        self._board = board

    async def prove(self, state: FaultState, armed: ArmedFault) -> None:
        """Wait until a strike has hit."""
        self.proved(state, armed, await armed.strike.fired(timeout_s=1e6))

    def proved(self, state: FaultState, armed: ArmedFault, proof: Proof | None) -> None:
        """The network says how a strike came out; its first word counts."""
        if proof is None or armed.proved:
            return
        armed.proved = True
        self._board.fired(state, proof.how, call=armed.call, let_through=armed.at)
        struck = self._board.struck.get(armed.call) if armed.call is not None else None
        if armed.call is not None and struck is not None and not struck.fault.slows:
            # Not settled: its connection is still held by the fault, and a hang-up would have to be told.
            struck.proved = True
            self._board.delivered(armed.call, self._board.cut(struck))
            self._release(armed.call)
        self._heal_later(state)

    def back_later(self, state: FaultState, gone: Strike) -> None:
        """What is gone comes back when the fault is healed, if not before by its own time."""
        state.strikes.append(ArmedFault(gone, proved=True))
        self._heal_later(state)

    def hung_up(self, call: int) -> None:
        """The agent hung up on a limited reply: no more of it will arrive."""
        struck = self._board.struck[call]
        struck.hung_up = True
        if struck.fault.slows and not struck.settled:
            self._settle(call, self._board.cut(struck))
        self._release(call)

    async def once_arrived(self, call: int) -> None:
        """A reply on a slow link has been written: it is whole when its last byte can have arrived."""
        struck = self._board.struck[call]
        if not struck.settled:
            await self._board.unless_healed(struck.state, struck.whole_s - self._board.clock.now())
            if not struck.settled and not struck.state.healed.is_set():
                self._settle(call, None)

    def _release(self, call: int) -> None:
        """A stall that proved itself and that nobody waits at any more is healed: held ends add up on a link."""
        struck = self._board.struck[call]
        if struck.how != "stalled" or not (struck.proved and struck.hung_up):
            return
        for armed in [armed for armed in struck.state.strikes if armed.call == call]:
            struck.state.strikes.remove(armed)
            struck.state.released.add(self._board.spawn(armed.strike.heal()))

    def nobody_waits(self, state: FaultState, armed: ArmedFault) -> None:
        """Whoever waited at this strike has gone: it is taken away, because it keeps others waiting."""
        if armed in state.strikes:
            state.strikes.remove(armed)
            state.released.add(self._board.spawn(self._give_back(state, armed)))

    async def _give_back(self, state: FaultState, armed: ArmedFault) -> None:
        await armed.strike.heal()
        self.proved(state, armed, await armed.strike.fired(timeout_s=0))

    def _heal_later(self, state: FaultState) -> None:
        wait = state.planned.heals_in_s
        if wait is not None:
            own = state.planned.heal_after_s is None
            self._board.spawn(self.heal_in(state, wait + self._start_up_s(state) if own else wait))

    def _start_up_s(self, state: FaultState) -> float:
        """What the agent takes until it asks, by its control run: a link that is back by then was not down for it."""
        at, run = state.planned.trigger, self._board.history.first(RunStarted)
        first = at.before_request and at.step == 1 and state.planned.link == "llm"
        return run.start_up_s if first and run is not None else 0.0

    async def heal_in(self, state: FaultState, seconds: float) -> None:
        """Heal it after so long, if nobody does so before: agents that still wait then get what was late."""
        await self._board.unless_healed(state, seconds)
        await self.heal(state, in_turn=True)

    async def heal(self, state: FaultState, *, in_turn: bool = False) -> None:
        """Take the harm away; return when it is gone."""
        async with state.healing:
            if not state.healed.is_set():
                await self._take_away(state, in_turn)

    async def _take_away(self, state: FaultState, in_turn: bool) -> None:
        state.healed.set()
        for call, struck in self._board.struck.items():
            if struck.state is state and not struck.settled:
                # Proven or not, more than this can't have passed.
                self._settle(call, None if in_turn and struck.fault.slows else self._board.cut(struck))
        await asyncio.gather(*state.released)
        async with state.port:
            strikes = list(state.strikes)
        for armed in strikes:
            with contextlib.suppress(NetworkError):
                await armed.strike.heal()
                # An agent that ends at once is faster than the network's count: what was proved by now counts.
                self.proved(state, armed, await armed.strike.fired(timeout_s=0) or self._passed_under(state, armed))
            self._unproven(state, armed)
        if state.fired:
            self._board.history.add(FaultHealed(fault=state.index, name=state.planned.fault.name))

    def _passed_under(self, state: FaultState, armed: ArmedFault) -> Proof | None:
        """What slows a link meets every reply that is written while it is on."""
        slows = state.wire is not None and state.wire.slows
        written = armed.call is not None and armed.call not in self._board.open_calls
        return Proof(armed.at, "the reply was written while it was on") if slows and written else None

    def _unproven(self, state: FaultState, armed: ArmedFault) -> None:
        if armed.call is None or armed.proved or self._board.history.sealed:
            return
        if state.wire is not None and state.wire.proof == "count":
            name = state.planned.fault.name
            self._board.history.add(FaultUnproven(fault=state.index, name=name, call=armed.call))

    def _settle(self, call: int, cut: PartialDelivery | None) -> None:
        """Tell how much of a struck reply arrived, now that the fault is over or the agent has hung up."""
        self._board.struck[call].settled = True
        self._board.delivered(call, cut)
