"""When faults on processes, and what people do, fire: at a reply, a tool's beacon, a session file or a time."""

import asyncio
from typing import Literal

from wedgehog.fake_llm.observer import BEFORE_HEAD, Point
from wedgehog.harness.faults.process_fault import ActorFault
from wedgehog.harness.inject.heal import Healer
from wedgehog.harness.inject.processes import Agent, AgentHands, Targets
from wedgehog.harness.inject.resolve_offset import resolve_offset
from wedgehog.harness.inject.state import SETTLE_S, FaultState, InjectorState
from wedgehog.harness.record.event import ReplyEnded
from wedgehog.harness.scenario.trigger import AtReply, SessionWritten

LINGER_S = 0.005
"""For the last bytes of a reply to cross the loopback, and for its reader to do next to nothing."""
HANG_UP_S = 0.5
"""For the end of a process to reach us as the end of its connection; an heir of the connection may keep it open."""
LOOK_EVERY_S = 0.002
"""How often session files are looked at while a fault waits for them to be written."""


class ProcessFaults:
    """Fires faults on processes, and asks the runner for what only it can do."""

    def __init__(self, state: InjectorState, healer: Healer, targets: Targets) -> None:
        """Nothing is asked of the runner yet."""
        self._state, self._healer = state, healer
        self.agent = Agent(targets)
        self._lingering: dict[int, list[FaultState]] = {}

    def at_reply(self, point: Point) -> list[tuple[FaultState, int]]:
        """The faults that fire at this reply, each with its byte; those that wait for something else begin to wait."""
        found = []
        for state in self._state.of_call(point.call, ActorFault):
            if isinstance(state.at, SessionWritten):
                self._state.spawn(self._once_written(state))
            elif isinstance(state.at, AtReply) and state.at.phase == "linger":
                self._lingering.setdefault(point.call, []).append(state)
            elif (byte := resolve_offset(state.at, point)) is not None:
                found.append((state, byte))
        return found

    async def at_byte(self, state: FaultState, byte: int) -> None:
        """A reply is held at the fault's byte. A process that is hit ends the connection, and cancels this code.

        That comes through the network a moment later: a reply that went on meanwhile would seem to have arrived.
        """
        self.agent.leaves = False
        await asyncio.shield(self._state.spawn(self._delayed(state, SETTLE_S if byte > BEFORE_HEAD else 0)))
        if self.agent.leaves:
            await self._state.clock.sleep(HANG_UP_S)

    def reply_ended(self, call: int) -> None:
        """A reply has been written: fire behind its last byte, unless its reader has gone."""
        for state in self._lingering.pop(call, ()):
            if any(end.call == call and end.how == "complete" for end in self._state.history.of(ReplyEnded)):
                self._state.spawn(self._delayed(state, LINGER_S))

    async def _delayed(self, state: FaultState, seconds: float) -> None:
        if seconds:
            await self._state.clock.sleep(seconds)
        if await self._state.delay(state):
            await self.act(state)

    async def _once_written(self, state: FaultState) -> None:
        before = self.agent.targets.sessions.look()
        while self.agent.targets.sessions.look() == before:
            await self._state.unless_healed(state, LOOK_EVERY_S)
            if state.healed.is_set():
                return
        await self._delayed(state, 0)

    async def act(self, state: FaultState) -> None:
        """Do it now."""
        if isinstance(state.planned.fault, ActorFault):
            await state.planned.fault.act(AgentHands(self.agent, self._state, self._healer, state))

    def beacon(self, token: str, phase: Literal["started", "done"]) -> None:
        """A scripted command has begun, or is over."""
        self.agent.tools.pop(token, None)
        if phase == "started":
            self.agent.tools[token] = None

    def forget(self) -> None:
        """No turn is under way: what was asked of the runner is void."""
        for queue in (self.agent.demands, self.agent.messages):
            while not queue.empty():
                queue.get_nowait()
