"""The gate of the fake provider's replies: each is held at the bytes of its faults until these are armed or done."""

import asyncio
from collections.abc import Sequence

from wedgehog.fake_llm.observer import ARRIVED, BEFORE_HEAD, Point
from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.process_fault import ActorFault
from wedgehog.harness.inject.fault_state import FaultState
from wedgehog.harness.inject.link_faults import Held, LinkFaults
from wedgehog.harness.inject.process_faults import ProcessFaults
from wedgehog.harness.network.base import NetworkError
from wedgehog.harness.scenario.trigger import CHANNEL


class ReplyGate:
    """Faults on links and processes at the place of a reply that their triggers name."""

    def __init__(self, run: LinkFaults, agent: ProcessFaults) -> None:
        """No reply is held yet."""
        self._run, self._agent = run, agent
        self._held_at: dict[tuple[int, int], list[FaultState]] = {}
        """Faults by the call and the body byte at which its reply is held for them."""
        self._refused: set[int] = set()
        self._arrived: set[int] = set()

    def refused(self, call: int) -> None:
        """The provider's own validator refused this request: no fault hits its answer."""
        self._refused.add(call)

    async def hold(self, point: Point) -> Sequence[int]:
        """Hold a reply until its bytes may pass, with the faults that this call meets armed."""
        stops: Sequence[int] = ()
        try:
            if point.at == ARRIVED:
                return await self._on_arrival(point)
            if point.at == BEFORE_HEAD:
                stops = await self._before_reply(point)
            else:
                await self._at_byte(point)
            # Last, because while this reply was held another one's limit may have been armed.
            carried = point.carried + (point.head + point.at if point.at >= 0 else 0)
            await self._run.links["llm"].admit(point.conn.peer, carried)
            self._run.written[point.call].goes_on(self._run.clock.now(), point)
        except NetworkError as wrong:
            self._run.fail(wrong)
            await asyncio.Event().wait()
        return stops

    async def _at_byte(self, point: Point) -> None:
        for state in self._held_at.pop((point.call, point.at), ()):
            if isinstance(state.planned.fault, ActorFault):
                await self._agent.at_byte(state, point.at)
            else:
                await self._inject(state, point, point.at)

    async def _before_reply(self, point: Point) -> Sequence[int]:
        stops: list[int] = []
        if point.call in self._refused:
            self._run.slowed(point.call)
            return stops
        for state in self._run.at_main_call(point.call):
            if state.due and not state.healed.is_set():
                # A request that is faster than the refusal came on a connection that is about to close.
                self._run.limit(point.call, state, 0)
                await state.healed.wait()
        for state in self._run.next_requests(point.call, "request") if point.body > 0 else ():
            # Armed while the last byte is held back, so that the agent cannot be faster than we are.
            stops.append(self._hold(state, point, point.body - 1))
        for state in self._run.of_call(point.call, WireFault, conn=point.conn.id):
            reply, byte = self._run.limited.get(point.call), state.at.byte_in(point)
            if reply is not None and reply.meant:
                break
            if byte is None:
                continue
            if state.planned.pause_at(point, byte):
                stops.append(self._hold(state, point, byte))
                break
            if byte > BEFORE_HEAD and (state.at_byte or state.at.after_s is not None):
                stops.append(self._hold(state, point, byte))
            else:
                await self._inject(state, point, byte)
        self._run.slowed(point.call)
        return [*stops, *await self._on_arrival(point)]

    async def _on_arrival(self, point: Point) -> Sequence[int]:
        """Faults on processes begin when the request is there, however late the reply is; once for each."""
        stops: list[int] = []
        if point.call in self._refused | self._arrived:
            return stops
        self._arrived.add(point.call)
        for state, byte in self._agent.at_reply(point):
            if byte > BEFORE_HEAD:
                stops.append(self._hold(state, point, byte))
            else:
                await self._agent.at_byte(state, byte)
        return stops

    def _hold(self, state: FaultState, point: Point, byte: int) -> int:
        """Hold this reply at a byte for this fault; return the byte."""
        self._held_at.setdefault((point.call, byte), []).append(state)
        return byte

    async def _inject(self, state: FaultState, point: Point, byte: int) -> None:
        """The reply is held at the fault's byte, or before it, where that will do."""
        if pause_s := state.planned.pause_at(point, byte):
            await self._run.unless_healed(state, pause_s)
        if state.healed.is_set():
            return
        if state.at.in_request:
            await self._run.before_request(state)
            return
        if state.planned.link == CHANNEL:
            self._run.spawn(self._run.whole_link(state, self._run.links[CHANNEL], point.call))
            return
        head, at = (0, 0) if byte == BEFORE_HEAD else (point.head, point.head + byte)
        link = self._run.links[state.planned.link]
        held = Held(link, point.conn.peer, point.carried, "the fake provider held the reply", point.call, head)
        if await self._run.inject(state, held, at) is not None:
            if state.planned.sticks_to == "connection":
                state.conns.add(point.conn.id)
            state.sticky = state.planned.sticks_to == "link"
