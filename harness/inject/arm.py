"""Arming wire faults: on whatever is held before a byte, before a request, and on a whole link."""

import asyncio
from dataclasses import dataclass

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.inject.heal import Healer
from wedgehog.harness.inject.resolve_offset import resolve_offset
from wedgehog.harness.inject.state import SETTLE_S, ArmedFault, FaultState, InjectorState
from wedgehog.harness.network.base import Address, Downstream, Link, Target, Upstream, WholeLink
from wedgehog.harness.scenario.plan import ALWAYS
from wedgehog.harness.scenario.trigger import BeforeRequest, Phase, Trigger


@dataclass(frozen=True, slots=True)
class Held:
    """Something whose sender waits while a fault is armed on it.

    A reply of the model, a tool's result, a database's reply, a response of the chat service, a direction of a pipe.
    """

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

    def target(self, fault: WireFault, byte: int) -> Target:
        """What the fault is armed on."""
        if fault.closes_port or self.conn is None:
            return WholeLink()
        kind = WholeLink if fault.reach == "link" else Downstream
        return kind(self.conn, self.start + byte)


class Armer:
    """Arms wire faults on the links."""

    def __init__(self, state: InjectorState, healer: Healer) -> None:
        """Nothing is armed yet."""
        self._state, self._healer = state, healer
        self._dropped: set[int] = set()

    async def inject(self, state: FaultState, held: Held, byte: int, *, delayed: bool = False) -> ArmedFault | None:
        """Inject a fault into what is held, at its byte `byte`, after the trigger's delay; return what is armed.

        The caller holds the sender anywhere before the byte, or at it where the fault begins at once (`at_byte`).
        `delayed`: the delay is over.
        """
        fault, at = state.wire, max(0, byte - held.head) if held.counts else None
        if not (delayed or await self._state.delay(state)) or fault is None:
            return None
        if fault.holds_s is not None:
            self._state.fired(state, held.proof, call=held.call, let_through=at)
            await self._state.unless_healed(state, fault.holds_s)
            return None
        if held.link is None or held.conn is None:
            return None
        if fault.closes_port:
            # It closes the connection of what is held, and that cancels the code that waits here.
            self._state.limit(held.call, state, at or 0)
            self._state.spawn(self.whole_link(state, held.link, held.call, at))
            await state.healed.wait()
            return None
        # A client that hangs up now cancels the code that waits here; what is half armed could not be healed.
        work = self._arm(state, fault, held.link, held.target(fault, byte), held.call, at)
        armed = await asyncio.shield(self._state.keep(asyncio.create_task(work)))
        if armed is not None:
            self._state.limit(held.call, state, at or 0)
            self._state.spawn(self._healer.prove(state, armed))
        return armed

    async def whole_link(self, state: FaultState, link: Link, call: int | None = None, at: int | None = None) -> None:
        """Arm a fault on the whole link; where a reply is held at byte `at`, once those bytes have arrived."""
        if at:
            await self._state.clock.sleep(SETTLE_S)
        if state.wire is not None and (armed := await self._arm(state, state.wire, link, WholeLink(), call, at)):
            self._state.spawn(self._healer.prove(state, armed))

    async def _arm(
        self, state: FaultState, fault: WireFault, link: Link, where: Target, call: int | None, at: int | None
    ) -> ArmedFault | None:
        """Arm, unless the fault is healed by now: what was armed too late is taken away at once."""
        if state.healed.is_set():
            return None
        if fault.closes_port:
            async with state.busy:  # it fires before it is proved, so healing waits for it
                self._dropped |= self._state.open_calls if state.planned.link == "llm" else set()
                state.armed.append(ArmedFault(await link.strike(fault, where), link, call, at))
            return state.armed[-1]
        slow = (
            next((it.strike for it in state.armed if it.link is link), None) if isinstance(where, WholeLink) else None
        )
        strike = slow or await link.strike(fault, where)  # a link that is slow already would be twice as slow
        if state.healed.is_set():
            await strike.heal()
            return None
        state.armed.append(ArmedFault(strike, link, call, at))
        for open_call in self._state.open_calls if self._state.slow(state) else ():
            self._state.limit(open_call, state, 0, meant=False)
        return state.armed[-1]

    def slow(self, call: int) -> None:
        """A reply is about to be written: what has slowed the link slows it too."""
        for state in filter(self._state.slow, self._state.states):
            self._state.limit(call, state, 0, meant=False)

    def dropped(self, call: int) -> bool:
        """Whether a fault closed the link while this reply was under way."""
        return call in self._dropped

    # ---- before a request

    def next_requests(self, call: int, phase: Phase) -> list[FaultState]:
        """Faults that fire at the request after this reply, which are armed once."""
        after = self._state.at_main_call(call, steps_on=1)
        return [state for state in after if _is_before(state.at, phase) and not state.armed]

    def closes_after(self, call: int) -> bool:
        """Whether the reply to `call` must end its connection, so that the next request comes on a fresh one."""
        if call not in self._state.calls:
            return False
        place, _ = self._state.calls[call]
        following = ((place.turn, place.step + 1), (place.turn + 1, 1))
        triggers = (state.at for state in self._state.states)
        return any(_is_before(at, "request") and (at.turn, at.step) in following for at in triggers)

    def reply_ended(self, call: int) -> None:
        """Arm what must be armed before the next request."""
        for state in self.next_requests(call, "connect"):
            state.due = state.wire is not None and state.wire.closes_port
            self._state.spawn(self._once_delivered(state))

    async def _once_delivered(self, state: FaultState) -> None:
        """Refusing closes what is open: let the bytes that were just written arrive first."""
        await self._state.clock.sleep(SETTLE_S)
        await self.before_request(state)

    async def before_request(self, state: FaultState) -> None:
        """Arm a fault on the next request, or on the link before its next connection; once for each of its times."""
        link, at = self._state.links[state.planned.link], resolve_offset(state.at) if state.at.in_request else None
        where = WholeLink() if at is None else Upstream(at)
        left = 10**6 if state.planned.times == ALWAYS else state.planned.times
        if state.wire is None or (armed := await self._arm(state, state.wire, link, where, None, at)) is None:
            return

        async def again(armed: ArmedFault | None, left: int) -> None:
            while armed is not None and state.wire is not None:
                await self._healer.prove(state, armed)
                left -= 1
                armed = await self._arm(state, state.wire, link, where, None, at) if left > 0 else None

        self._state.spawn(again(armed, 1 if at is None else left))


def _is_before(at: Trigger, phase: Phase) -> bool:
    return isinstance(at, BeforeRequest) and at.phase == phase
