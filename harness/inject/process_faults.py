"""Faults on processes and disks, and what people do: when they fire."""

import asyncio
from collections.abc import Callable, Hashable
from functools import partial
from typing import Literal

from wedgehog.fake_llm.observer import BEFORE_HEAD, Point
from wedgehog.harness.faults.process_fault import ActorFault, Demand, Hands
from wedgehog.harness.inject.fault_state import FaultState
from wedgehog.harness.inject.injector_state import SETTLE_S
from wedgehog.harness.inject.link_faults import LinkFaults
from wedgehog.harness.inject.targets import Targets
from wedgehog.harness.record.clock import first_of
from wedgehog.harness.record.events.call import ReplyEnded, RequestRefused
from wedgehog.harness.scenario.trigger import AtReply, SessionWritten
from wedgehog.harness.sim.virtual_time import a_moment

LINGER_S = 0.005
"""For the last bytes of a reply to cross the loopback, and for its reader to do next to nothing."""
HANG_UP_S = 0.5
"""How long the end of a process may take to show as the end of its connection; a child may keep the connection open."""
LOOK_EVERY_S = 0.002
"""How often session files are looked at while a fault waits for them to be written."""

ToRunner = Demand | Literal["look"]
"""What the runner is asked to do; `look`: to see now, not at its next tick, whether the turn has to be stopped."""


HandsOf = Callable[["ProcessFaults", FaultState], Hands]
"""Makes the hands of one planned fault."""


class ProcessFaults:
    """Fires faults on processes, and asks the runner for what only it can do."""

    def __init__(self, run: LinkFaults, targets: Targets, hands: HandsOf) -> None:
        self.run, self.targets, self._hands = run, targets, hands
        self.demands: asyncio.Queue[tuple[ToRunner, float | None]] = asyncio.Queue()
        """What the runner must do with the turn now, and after how long by its clock; None: at an event."""
        self.messages: asyncio.Queue[int] = asyncio.Queue()
        """Turns whose message the runner must give now, beside the one under way."""
        self.tools: dict[str, None] = {}
        """Scripted commands that run, oldest first."""
        self.leaves = False
        """Whether the last fault makes the agent close its connections: its process ended, or its user stopped it."""
        self.dying_until_s = 0.0
        """Until then an agent that got a signal to end may still end by it: no deadline is judged before."""
        self.thawed_s = 0.0
        self.frozen_since_s: dict[int, float] = {}
        self._lingering: dict[int, list[FaultState]] = {}

    @property
    def frozen_s(self) -> float:
        """How long the agent's own processes have stood still so far."""
        now = self.run.clock.now()
        return self.thawed_s + max((now - since_s for since_s in self.frozen_since_s.values()), default=0)

    def at_reply(self, point: Point) -> list[tuple[FaultState, int]]:
        """The faults that fire at this reply, each with its byte; those that wait for something else begin to wait."""
        found = []
        for state in self.run.of_call(point.call, ActorFault):
            if isinstance(state.at, SessionWritten):
                self.run.spawn(self._once_written(state, self.targets.sessions.look()))
            elif isinstance(state.at, AtReply) and state.at.phase == "linger":
                self._lingering.setdefault(point.call, []).append(state)
            elif (byte := state.at.byte_in(point)) is not None:
                found.append((state, byte))
        return found

    async def at_byte(self, state: FaultState, byte: int) -> None:
        """A reply is held at the fault's byte. A process that is hit ends the connection, and cancels this code.

        That comes through the network a moment later: a reply that went on meanwhile would seem to have arrived.
        """
        self.leaves = False
        await asyncio.shield(self.run.spawn(self._delayed(state, SETTLE_S if byte > BEFORE_HEAD else 0)))
        if self.leaves:
            await self.run.clock.sleep(HANG_UP_S)

    def reply_ended(self, call: int) -> None:
        """A reply has been written: fire behind its last byte, unless its reader has gone."""
        for state in self._lingering.pop(call, ()):
            whole = any(end.call == call and end.how == "complete" for end in self.run.history.of(ReplyEnded))
            if whole or any(refused.call == call for refused in self.run.history.of(RequestRefused)):
                self.run.spawn(self._delayed(state, LINGER_S))

    async def _delayed(self, state: FaultState, seconds: float) -> None:
        if seconds:
            await self.run.clock.sleep(seconds)
        if await self.run.delay(state):
            await self.act(state)

    async def _once_written(self, state: FaultState, before: Hashable) -> None:
        """Wait until the session files differ from `before`, how they were when the reply was held."""
        while self.targets.sessions.look() == before:
            await first_of(state.healed.wait(), a_moment(partial(self.run.clock.sleep, LOOK_EVERY_S)))
            if state.healed.is_set():
                return
        await self._delayed(state, 0)

    async def act(self, state: FaultState) -> None:
        """Cause a fault now."""
        if isinstance(state.planned.fault, ActorFault):
            await state.planned.fault.act(self._hands(self, state))

    def beacon(self, token: str, phase: Literal["started", "done"]) -> None:
        """A scripted command has begun, or is over."""
        self.tools.pop(token, None)
        if phase == "started":
            self.tools[token] = None

    def forget(self) -> None:
        """No turn is under way: what was asked of the runner is void."""
        for queue in (self.demands, self.messages):
            while not queue.empty():
                queue.get_nowait()
