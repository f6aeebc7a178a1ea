"""Faults of pipes: each `wedgehog-pipe` that opens meets the faults of its name, exactly at their byte.

Bytes count from the moment at which a fault is armed: the pipe's start, or the turn's where the pipe was open before,
or the beacon of its trigger. The pipe is held while a fault is armed, so that no byte passes before.
"""

import asyncio
from collections.abc import Callable
from typing import Literal

from wedgehog.harness.inject.fault_state import FaultState, PlacedStrike
from wedgehog.harness.inject.link_faults import Held, LinkFaults
from wedgehog.harness.network.base import NetworkError, Proof
from wedgehog.harness.record.clock import first_of
from wedgehog.harness.record.events.service import PipeClosed, PipeOpened
from wedgehog.harness.scenario.link_triggers import AtPipe
from wedgehog.harness.stdio_proxy.session import Direction, HoldPoint, StdioSession, StreamEnd

CLOSING_S = 10.0
"""For a pipe whose connections have gone to say that it has ended: its word may be late on a busy machine."""
PROOF_S = 0.2
"""For the network's count of a pipe that ends at once."""


class StdioFaults:
    """Watches pipes (a `StdioObserver`), turns and beacons, and fires."""

    def __init__(self, run: LinkFaults) -> None:
        self._run = run
        self._open: list[StdioSession] = []
        self.resets: Callable[[str], bool] = run.plan.resets
        """Whether a connection of the link of this name may end with RST."""

    async def before_turn(self) -> None:
        """Arm the turn's faults on the pipes that are open; those that open later meet them then."""
        for state in self._of_turn():
            for pipe in self._held_by_agent(state):
                await self._run.guarded(self._meet(state, pipe))

    def set_off_by(self, token: str, phase: Literal["started", "done"]) -> list[FaultState]:
        """The faults that this beacon sets off."""
        named = (*map(int, token.split(".")), phase)
        return [state for state in self._run.states if not state.matched and _beacon(state) == named]

    async def at_tool(self, found: list[FaultState]) -> None:
        """A beacon set these off: each is armed when this returns, on the youngest pipe of its name."""
        for state in found:
            state.matched += 1
            for pipe in self._held_by_agent(state)[-1:]:
                await self._begin(state, pipe)

    def _held_by_agent(self, state: FaultState) -> list[StdioSession]:
        """Open pipes of its name; a pipe without a reader was left behind by an agent that has ended."""
        return [pipe for pipe in self._open if _on(state, pipe) and not pipe.abandoned]

    def _of_turn(self) -> list[FaultState]:
        """Faults of this turn that wait for no tool."""
        found = self._run.of_turn(self._run.turn)
        return [state for state in found if isinstance(state.at, AtPipe) and state.at.tool is None]

    # ---- pipes

    async def opened(self, pipe: StdioSession) -> None:
        """It is held before its first byte: arm what it must meet."""
        self._run.history.add_unless_sealed(PipeOpened(name=pipe.name, pid=pipe.pid, child=pipe.child))
        self._open.append(pipe)
        for direction in pipe.ways.values():
            direction.ended.add_done_callback(lambda done, it=direction: self._link_ended(pipe, it, done.result()))  # type: ignore[misc]
        for state in self._of_turn():
            if _on(state, pipe):
                await self._meet(state, pipe)

    async def closed(self, pipe: StdioSession) -> None:
        """It has ended: its faults are proved by now, or never."""
        if pipe in self._open:
            self._open.remove(pipe)
        await asyncio.sleep(0)  # how its links ended may be known in this same step: that comes first
        for direction in pipe.ways.values():
            for state, armed in self._armed(direction):
                await self._run.guarded(self._last_look(state, armed, direction))
        out, into = (pipe.ways[way].passed for way in ("out", "in"))
        self._run.history.add_unless_sealed(
            PipeClosed(name=pipe.name, pid=pipe.pid, exit_code=pipe.status, stdout_bytes=out, stdin_bytes=into)
        )

    def trouble(self, what: str) -> None:
        """The pipe broke, and nothing of the plan did it."""
        self._run.fail(NetworkError(what))

    # ---- arming

    async def _meet(self, state: FaultState, pipe: StdioSession) -> None:
        """A pipe counts as an attempt: attempt and times say which pipes are hit."""
        if not state.healed.is_set() and state.meets_one_more():
            await self._begin(state, pipe)

    async def _begin(self, state: FaultState, pipe: StdioSession) -> None:
        """Arm it now, or after its delay, during which the pipe is not held."""
        if state.at.after_s:
            self._run.spawn(self._inject(state, pipe))
        else:
            await self._inject(state, pipe)

    async def _inject(self, state: FaultState, pipe: StdioSession) -> None:
        """While the pipe is held, arm; where the fault begins as soon as it is armed, hold the pipe at its byte."""
        direction = pipe.ways["in" if state.at.in_request else "out"]
        if not await self._run.delay(state):
            return
        async with direction.held() as base:
            if base is None or state.healed.is_set():
                return
            if direction.ended.done():
                self._run.no_target(state)
                return
            byte = base + state.at.first_byte
            if state.at_byte:
                self._run.spawn(self._at_its_byte(state, pipe, direction, direction.stop(byte)))
            else:
                await self._arm(state, pipe, direction, byte)

    async def _at_its_byte(self, state: FaultState, pipe: StdioSession, direction: Direction, stop: HoldPoint) -> None:
        try:
            await first_of(stop.reached, state.healed.wait())
            byte = stop.reached.result() if stop.reached.done() else None
            if byte is not None and not state.healed.is_set():
                await self._arm(state, pipe, direction, byte)
        finally:
            direction.go(stop)

    async def _arm(self, state: FaultState, pipe: StdioSession, direction: Direction, byte: int) -> None:
        """Arm it. A pipe that ends meanwhile can't be hit, and that is no error of the network."""
        try:
            held = Held(direction.link, direction.conn, 0, "the pipe was held")
            await self._run.inject(state, held, byte, delayed=True)
        except NetworkError:
            if not await first_of(pipe.closed.wait(), direction.ended, timeout_s=CLOSING_S):
                raise
            self._run.no_target(state)

    # ---- proof

    def _armed(self, direction: Direction) -> list[tuple[FaultState, PlacedStrike]]:
        states = self._run.states
        return [(state, armed) for state in states for armed in state.armed if armed.link is direction.link]

    def _link_ended(self, pipe: StdioSession, direction: Direction, ended: StreamEnd) -> None:
        """The agent's end of a link was closed: by a fault at its byte, or it is an error of the network."""
        found = self._armed(direction)
        for state, armed in found:
            if state.wire is not None and (state.wire.ends, armed.at) == (ended.how, ended.received):
                how = f"wedgehog-pipe got {ended.received} bytes, then {ended.how.upper()}"
                self._run.proved(state, armed, Proof(ended.received, how))
                return
        silent = (state for state, _ in found if state.wire is not None and state.wire.ends == "stall")
        if not any(state.healed.is_set() for state in silent):
            where = f"{pipe.name} ({direction.way}) ended after {ended.received} bytes with {ended.how.upper()}"
            self.trouble(f"the link of the pipe {where}, and no fault did it")

    async def _last_look(self, state: FaultState, armed: PlacedStrike, direction: Direction) -> None:
        """The pipe is over, and its links are about to close: take the last proof."""
        at, passed = armed.at or 0, direction.passed
        if not armed.proved and state.slows and passed is not None and passed > at:
            # What slows loses nothing: bytes that crossed under it have met it.
            self._run.proved(state, armed, Proof(at, f"{passed - at} bytes crossed the pipe under it"))
        if not armed.proved and (passed is None or passed >= at):
            self._run.proved(state, armed, await armed.strike.fired(PROOF_S))
        await armed.strike.heal()


def _on(state: FaultState, pipe: StdioSession) -> bool:
    return state.planned.link == f"ipc:{pipe.name}"


def _beacon(state: FaultState) -> tuple[int | str, ...] | None:
    """The tool's beacon from which on bytes count, None: they count from the turn's start."""
    at = state.at
    return (at.turn, at.step, at.tool, at.when) if isinstance(at, AtPipe) and at.tool is not None else None
