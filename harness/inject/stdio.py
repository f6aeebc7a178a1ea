"""Harm to pipes: each `wedgehog-pipe` that opens meets the faults of its name, exactly at their byte.

Bytes count from the moment at which a fault is armed: the pipe's start, or the turn's where the pipe was open before,
or the beacon of its trigger. It is armed while the pipe stands, hence not a byte too late.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from wedgehog.harness.inject.fault_state import ArmedFault, FaultState
from wedgehog.harness.inject.heal import Healer
from wedgehog.harness.inject.resolve_offset import resolve_offset
from wedgehog.harness.inject.state import InjectorState
from wedgehog.harness.network.base import Downstream, NetworkError, Proof, Target, WholeLink
from wedgehog.harness.record.event import FaultArmed, Note, PipeClosed, PipeOpened
from wedgehog.harness.scenario.plan import FaultPlan
from wedgehog.harness.scenario.trigger import AtPipe
from wedgehog.harness.stdio_proxy.session import Direction, HoldPoint, StdioSession, StreamEnd

BeaconMoment = Literal["started", "done"]

CLOSING_S = 10.0
"""For a pipe whose connections have gone to say that it has ended: its word may be late on a busy machine."""
PROOF_S = 0.2
"""A pipe that ends at once is faster than the network's count: for so long it is waited for."""


class StdioFaults:
    """Hears of pipes (a `PipeWatcher`), of turns and of beacons, and strikes."""

    def __init__(self, plan: FaultPlan, board: InjectorState, healing: Healer) -> None:
        """No pipe is open."""
        faults = enumerate(plan.faults)
        self._states = [FaultState(index, planned) for index, planned in faults if planned.on_pipe]
        self._plan, self._board, self._healing = plan, board, healing
        self._open: list[StdioSession] = []
        self._armed: dict[Direction, list[tuple[FaultState, ArmedFault]]] = {}
        self._turn = 0

    def resets(self, link: str) -> bool:
        """Whether an RST may be struck on this link."""
        return self._plan.resets(link)

    # ---- turns and beacons

    async def before_turn(self, turn: int) -> None:
        """Arm the turn's faults on the pipes that are open; those to come will meet them."""
        self._turn = turn
        for state in self._of_turn():
            name, link = state.planned.fault.name, state.planned.link
            self._board.history.add(FaultArmed(fault=state.index, name=name, link=link))
            if _beacon(state) is None:
                for pipe in self._held_by_agent(state):
                    await self._board.guarded(self._meet(state, pipe))

    async def after_turn(self) -> None:
        """Heal all that this turn's faults left."""
        for state in self._of_turn():
            await self._healing.heal(state)

    async def close(self) -> None:
        """Heal everything."""
        for state in self._states:
            await self._healing.heal(state)

    def hears(self, token: str, phase: BeaconMoment) -> list[FaultState]:
        """The faults that this beacon sets off."""
        turn, step, tool = map(int, token.split("."))
        named = (turn, step, tool, phase)
        return [state for state in self._states if not state.matched and _beacon(state) == named]

    async def at_tool(self, token: str, phase: BeaconMoment) -> None:
        """A tool has left its beacon: what it sets off is armed when this returns, on the youngest pipe of its name."""
        for state in self.hears(token, phase):
            state.matched += 1
            for pipe in self._held_by_agent(state)[-1:]:
                await self._begin(state, pipe)

    def _held_by_agent(self, state: FaultState) -> list[StdioSession]:
        """Open pipes of its name; one that nobody reads any more was left behind by an agent that has ended."""
        return [pipe for pipe in self._open if _on(state, pipe) and not pipe.abandoned]

    def _of_turn(self) -> list[FaultState]:
        return [state for state in self._states if state.planned.trigger.turn == self._turn]

    # ---- pipes

    async def opened(self, pipe: StdioSession) -> None:
        """It stands before its first byte: arm what it must meet."""
        if not self._board.history.sealed:
            self._board.history.add(PipeOpened(name=pipe.name, pid=pipe.pid, child=pipe.child))
        self._open.append(pipe)
        for direction in pipe.ways.values():
            direction.ended.add_done_callback(lambda done, it=direction: self._link_ended(pipe, it, done.result()))  # type: ignore[misc]
        for state in self._of_turn():
            if _on(state, pipe) and _beacon(state) is None:
                await self._meet(state, pipe)

    async def closed(self, pipe: StdioSession) -> None:
        """It has ended; what struck it has proved itself by now, or never will."""
        if pipe in self._open:
            self._open.remove(pipe)
        await asyncio.sleep(0)  # how its links ended may have been heard in the same breath: that comes first
        for direction in pipe.ways.values():
            for state, armed in self._armed.pop(direction, ()):
                await self._board.guarded(self._last_look(state, armed, direction))
        if not self._board.history.sealed:
            out, into = (pipe.ways[way].passed for way in ("out", "in"))
            self._board.history.add(
                PipeClosed(name=pipe.name, pid=pipe.pid, exit_code=pipe.status, stdout_bytes=out, stdin_bytes=into)
            )

    def trouble(self, what: str) -> None:
        """The pipe broke, and nothing of the plan did it."""
        self._board.break_(NetworkError(what))

    # ---- strikes

    async def _meet(self, state: FaultState, pipe: StdioSession) -> None:
        """A pipe counts as an attempt: the first ones may be spared, and only so many are struck."""
        if not state.healed.is_set() and state.meets_one_more():
            await self._begin(state, pipe)

    async def _begin(self, state: FaultState, pipe: StdioSession) -> None:
        if state.planned.trigger.after_s:
            self._board.spawn(self._later(state, pipe, state.planned.trigger.after_s))
        else:
            await self._strike(state, pipe)

    async def _later(self, state: FaultState, pipe: StdioSession, after_s: float) -> None:
        await self._board.unless_healed(state, after_s)
        await self._strike(state, pipe)

    async def _strike(self, state: FaultState, pipe: StdioSession) -> None:
        """While it stands, arm; what begins as soon as it is armed waits for its byte."""
        direction = pipe.ways["in" if state.planned.trigger.in_request else "out"]
        async with direction.held() as base:
            if base is None or state.healed.is_set():
                return
            if direction.ended.done():
                self._nobody(state)
                return
            at = base + (resolve_offset(state.planned.trigger) or 0)
            if _must_stand(state):
                stop = direction.stop(at)
                work = self._unless_over(state, pipe, direction, lambda: self._at_its_byte(state, direction, stop))
                self._board.spawn(work)
            else:
                await self._unless_over(state, pipe, direction, lambda: self._arm(state, direction, at))

    async def _unless_over(
        self, state: FaultState, pipe: StdioSession, direction: Direction, arm: Callable[[], Awaitable[None]]
    ) -> None:
        """A pipe that ends while it is being struck cannot be struck, and nothing is wrong with the network."""
        try:
            await arm()
        except NetworkError:
            closed = asyncio.ensure_future(pipe.closed.wait())
            ends: set[asyncio.Future[Any]] = {closed, direction.ended}
            over, _ = await asyncio.wait(ends, timeout=CLOSING_S, return_when=asyncio.FIRST_COMPLETED)
            closed.cancel()
            if not over:
                raise
            self._nobody(state)

    def _nobody(self, state: FaultState) -> None:
        if not self._board.history.sealed:
            self._board.history.add(Note(what=f"{state.planned}: nobody was there to be hit"))

    async def _at_its_byte(self, state: FaultState, direction: Direction, stop: HoldPoint) -> None:
        try:
            await self._reached(stop, state)
            at = stop.reached.result() if stop.reached.done() else None
            if at is None or state.healed.is_set():
                return
            if state.wire is not None and state.wire.holds_s is not None:
                self._board.fired(state, "the pipe was held", let_through=at)
                await self._board.unless_healed(state, state.wire.holds_s)
            else:
                await self._arm(state, direction, at)
        finally:
            direction.go(stop)

    async def _reached(self, stop: HoldPoint, state: FaultState) -> None:
        """Wait for the byte, or until the fault is healed before."""
        waits: list[asyncio.Future[Any]] = [stop.reached, asyncio.ensure_future(state.healed.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waits[1].cancel()

    async def _arm(self, state: FaultState, direction: Direction, at: int) -> None:
        fault = state.wire
        if fault is None:
            return
        where: Target = WholeLink(direction.conn, at) if fault.reach == "link" else Downstream(direction.conn, at)
        armed = ArmedFault(await direction.link.strike(fault, where), at=at)
        state.strikes.append(armed)
        self._armed.setdefault(direction, []).append((state, armed))
        self._board.spawn(self._healing.prove(state, armed))

    # ---- proof

    def _link_ended(self, pipe: StdioSession, direction: Direction, ended: StreamEnd) -> None:
        """The agent's end of a link was closed: by a fault that was to do so at that byte, or by nobody of ours."""
        strikes = self._armed.get(direction, [])
        for state, armed in strikes:
            if state.wire is not None and (state.wire.ends, armed.at) == (ended.how, ended.received):
                how = f"wedgehog-pipe got {ended.received} bytes, then {ended.how.upper()}"
                self._healing.proved(state, armed, Proof(ended.received, how))
                return
        silent = (state for state, _ in strikes if state.wire is not None and state.wire.ends == "stall")
        if not any(state.healed.is_set() for state in silent):
            where = f"{pipe.name} ({direction.way}) ended after {ended.received} bytes with {ended.how.upper()}"
            self.trouble(f"the link of the pipe {where}, and no fault did it")

    async def _last_look(self, state: FaultState, armed: ArmedFault, direction: Direction) -> None:
        """The pipe is over, and its links are about to close: what has struck says so now, or never."""
        at, passed = armed.at or 0, direction.passed
        slows = state.wire is not None and state.wire.slows
        if not armed.proved and slows and passed is not None and passed > at:
            # What slows loses nothing: bytes that crossed under it have met it.
            self._healing.proved(state, armed, Proof(at, f"{passed - at} bytes crossed the pipe under it"))
        if not armed.proved and (passed is None or passed >= at):
            self._healing.proved(state, armed, await armed.strike.fired(PROOF_S))
        await armed.strike.heal()


def _on(state: FaultState, pipe: StdioSession) -> bool:
    return state.planned.link == f"ipc:{pipe.name}"


def _beacon(state: FaultState) -> tuple[int, int, int, str] | None:
    """The tool's beacon from which on bytes count, None: they count from the turn's start."""
    at = state.planned.trigger
    return (at.turn, at.step, at.tool, at.when) if isinstance(at, AtPipe) and at.tool is not None else None


def _must_stand(state: FaultState) -> bool:
    """Whether the harm begins as soon as it is armed, so that the pipe must stand at the byte itself."""
    return state.wire is not None and state.wire.begins == "at_spot"
