"""Harm to processes, and what people do: when a call, a beacon, a session file or a timer says so."""

import asyncio
from dataclasses import dataclass
from typing import Literal

from wedgehog.fake_llm.observer import BEFORE_HEAD, Point
from wedgehog.harness.faults.process_fault import ActorFault, Demand, ProcessFault, SignalName, Whom
from wedgehog.harness.inject.disk_filler import DiskFiller
from wedgehog.harness.inject.fault_state import FaultState
from wedgehog.harness.inject.freezer import Freezer
from wedgehog.harness.inject.heal import Healer
from wedgehog.harness.inject.killer import Killer
from wedgehog.harness.inject.resolve_offset import resolve_offset
from wedgehog.harness.inject.state import SETTLE_S, InjectorState
from wedgehog.harness.record.event import ReplyEnded
from wedgehog.harness.scenario.trigger import AtReply, AtTool, SessionWritten

LINGER_S = 0.005
"""For the last bytes of a reply to cross the loopback, and for its reader to do next to nothing."""
HANG_UP_S = 0.5
"""For the end of a process to reach us as the end of its connection; an heir of the connection may keep it open."""
LOOK_EVERY_S = 0.002
"""How often session files are looked at while a fault waits for them to be written."""


class ActorFaults:
    """Does what can be done to processes, and asks for what only the runner can do."""

    def __init__(self, board: InjectorState, healing: Healer) -> None:
        """Nothing is asked for yet."""
        self._board = board
        self.filling = DiskFiller(board, healing)
        self.killing = Killer(board)
        self.freezing = Freezer(board, self.killing)
        self.demands: asyncio.Queue[tuple[Demand, float | None]] = asyncio.Queue()
        self.messages: asyncio.Queue[int] = asyncio.Queue()
        """Turns whose message is to be given now, beside the one under way."""
        self._lingering: dict[int, list[FaultState]] = {}
        self._tools: dict[str, None] = {}
        """Scripted commands that run, oldest first."""

    # ---- triggers

    def at_reply(self, point: Point) -> list[tuple[FaultState, int]]:
        """The faults on processes that strike at this reply, each with its byte; those that wait begin to wait."""
        found = []
        for state in self._board.hit(point.call, ProcessFault):
            at = state.planned.trigger
            if isinstance(at, SessionWritten):
                self._board.spawn(self._once_written(state))
            elif isinstance(at, AtReply) and at.phase == "linger":
                self._lingering.setdefault(point.call, []).append(state)
            elif (where := resolve_offset(at, point)) is not None:
                found.append((state, where))
        return found

    async def at_stop(self, state: FaultState, at: int) -> None:
        """A reply stands at the fault's spot. Who is hit ends the very connection at which we stand, and us with it.

        That comes through the network a moment later: a reply that went on meanwhile would seem to have arrived.
        """
        self.killing.dead = False
        await asyncio.shield(self._board.spawn(self._delivered_and_struck(state, at)))
        if self.killing.dead:
            await self._board.clock.sleep(HANG_UP_S)

    async def _delivered_and_struck(self, state: FaultState, at: int) -> None:
        if at > BEFORE_HEAD:
            await self._board.clock.sleep(SETTLE_S)
        await self.strike(state)

    def reply_ended(self, call: int) -> None:
        """A reply has been written: strike behind its last byte, unless nobody took it."""
        for state in self._lingering.pop(call, ()):
            if any(end.call == call and end.how == "complete" for end in self._board.history.of(ReplyEnded)):
                self._board.spawn(self._lingered(state))

    async def _lingered(self, state: FaultState) -> None:
        await self._board.clock.sleep(LINGER_S)
        await self.strike(state)

    async def _once_written(self, state: FaultState) -> None:
        before = self.killing.sessions.look()
        while self.killing.sessions.look() == before:
            await self._board.unless_healed(state, LOOK_EVERY_S)
            if state.healed.is_set():
                return
        await self.strike(state)

    def beacon(self, token: str, phase: Literal["started", "done"]) -> None:
        """A scripted command has begun, or is over."""
        self._tools.pop(token, None)
        if phase == "started":
            self._tools[token] = None

    # ---- deeds

    async def strike(self, state: FaultState) -> None:
        """A call, a timer, a beacon or a file set it off; its own delay comes first."""
        if state.planned.trigger.after_s:
            await self._board.unless_healed(state, state.planned.trigger.after_s)
        if not state.healed.is_set():
            await self.act(state)

    async def act(self, state: FaultState) -> None:
        """Do it now."""
        if isinstance(state.planned.fault, ActorFault):
            await state.planned.fault.act(_Hands(self, self._board, state))

    def tool_of(self, state: FaultState) -> str:
        """The tool call that a trigger names; else the youngest that runs."""
        at = state.planned.trigger
        if isinstance(at, AtTool):
            return f"{at.turn}.{at.step}.{at.tool}"
        return next(reversed(self._tools), "")

    def forget(self) -> None:
        """No turn is under way: nobody is left to obey."""
        for queue in (self.demands, self.messages):
            while not queue.empty():
                queue.get_nowait()


@dataclass(frozen=True, slots=True)
class _Hands:
    """The hands of one planned fault."""

    actors: ActorFaults
    board: InjectorState
    state: FaultState

    async def demand(self, what: Demand) -> None:
        """The runner obeys."""
        self.board.fired(self.state, "the runner did it")
        await self.actors.demands.put((what, self.state.planned.trigger.after_s))

    async def speak(self, turn: int) -> None:
        """The runner gives the message."""
        await self.actors.messages.put(turn)

    async def kill(self, signal: SignalName, whom: Whom, *, tear: bool) -> None:
        """Send the signal."""
        await self.actors.killing.kill(self.state, signal, whom, self.actors.tool_of(self.state), tear=tear)

    async def freeze(self, whom: Whom, for_s: float) -> None:
        """Stop them for a while."""
        await self.actors.freezing.freeze(self.state, whom, for_s, self.actors.tool_of(self.state))

    async def fill(self, free_bytes: int) -> None:
        """Fill the disk."""
        await self.actors.filling.fill(self.state, free_bytes)
