"""Harm to our own tools: results of the tool host, the bytes that carry them, replies of the database."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from wedgehog.harness.faults.base import WireFault
from wedgehog.harness.faults.process_fault import ProcessFault
from wedgehog.harness.faults.result_fault import Result, ResultFault
from wedgehog.harness.inject.arm import WireFaults
from wedgehog.harness.inject.fault_state import ArmedFault, FaultState
from wedgehog.harness.inject.heal import Healer
from wedgehog.harness.inject.resolve_offset import resolve_offset
from wedgehog.harness.inject.state import InjectorState
from wedgehog.harness.network.base import Address, Downstream, NetworkError, Proof
from wedgehog.harness.scenario.trigger import HOST, PIPE, STORE, AtChat, AtQuery, AtTool

ConnectionPoint = tuple[Address, int]
"""A connection as the link's upstream knows it, and how many bytes it has carried towards the agent."""


class ServiceFaults:
    """Asked by the tool host and the database before they answer."""

    def __init__(self, board: InjectorState, healing: Healer, wire: WireFaults) -> None:
        """Nobody has asked yet."""
        self._board, self._healing, self._wire = board, healing, wire
        self._at: dict[Address, tuple[FaultState, ArmedFault]] = {}
        """What was struck on which connection of the chat service."""
        self.turn = 0
        """The one that began last."""
        self.restart_server: Callable[[], Awaitable[None]] | None = None
        """How a tool server that was killed comes back."""

    def at_its_place(self, state: FaultState) -> bool:
        """Whether a fault strikes where the host or the database asks for it, and not by the beacon as such."""
        fault, link = state.planned.fault, state.planned.link
        return isinstance(fault, ResultFault) or (link in (HOST, STORE) and about_bytes(fault))

    def at_its_server(self, state: FaultState) -> bool:
        """Whether a fault strikes the tool host's server or its link, on which a result may be under way."""
        fault, link = state.planned.fault, state.planned.link
        return link in (HOST, PIPE) or (isinstance(fault, ProcessFault) and fault.at_server)

    # ---- results

    def asked(self, token: str, result: Result) -> tuple[Result, Sequence[FaultState]]:
        """The result of the call turn.step.call as the plan leaves it, and the faults that strike as it is written."""
        later = []
        for state in self._named(token):
            fault = state.planned.fault
            if isinstance(fault, ResultFault) and state.meets_one_more():
                result = fault.on_result(result)
                if fault.strikes_at_once:
                    self._board.fired(state, fault.proof)
                else:
                    later.append(state)
        return result, later

    def written(self, faults: Sequence[FaultState]) -> None:
        """The response that these faults changed has been written."""
        for state in faults:
            if isinstance(state.planned.fault, ResultFault):
                self._board.fired(state, state.planned.fault.proof)

    # ---- bytes

    async def at(self, token: str, spot: ConnectionPoint | None) -> None:
        """A call's result stands before its first byte: strike what is due there."""
        for state in self._named(token):
            if state.planned.link == HOST and about_bytes(state.planned.fault) and state.meets_one_more():
                await self._strike(state, spot)

    async def at_query(self, turn: int, spot: ConnectionPoint) -> None:
        """The database's reply to the turn's next query stands before its first byte."""
        for state in self._board.of_turn(turn):
            at = state.planned.trigger
            if not isinstance(at, AtQuery) or state.healed.is_set():
                continue
            if state.meets_one_more(at.query):
                await self._strike(state, spot)

    async def at_chat(self, what: str, spot: ConnectionPoint) -> None:
        """The chat service's response to such a request stands before its first byte.

        With the poll that brings the message, what strikes the agent's next request is armed too.
        """
        for state in self._board.of_turn(self.turn):
            at = state.planned.trigger
            if not isinstance(at, AtChat) or state.healed.is_set():
                continue
            if at.in_request:
                if what == "poll" and not state.strikes:
                    await self._wire.before_request(state)
            elif at.chat == what and state.meets_one_more():
                await self._strike(state, spot)
                if state.strikes:
                    self._at[spot[0]] = (state, state.strikes[-1])

    def left_chat(self, conn: Address) -> None:
        """This connection of the chat service is gone."""
        if conn in self._at:
            self._healing.nobody_waits(*self._at.pop(conn))

    async def _strike(self, state: FaultState, spot: ConnectionPoint | None) -> None:
        fault, trigger = state.planned.fault, state.planned.trigger
        if trigger.after_s:
            await self._board.unless_healed(state, trigger.after_s)
        if not isinstance(fault, WireFault) or state.healed.is_set():
            return
        if fault.holds_s is not None:
            self._board.fired(state, "its answer was held back")
            await self._board.unless_healed(state, fault.holds_s)
        elif not about_bytes(fault):
            await self._wire.whole_link(state, fault)
        elif spot is not None:
            conn, written = spot
            await self._wire.strike_at(state, fault, Downstream(conn, written + (resolve_offset(trigger) or 0)))

    # ---- the server

    def server_killed(self, state: FaultState) -> None:
        """It is back when the fault is healed."""
        if self.restart_server is not None:
            self._healing.back_later(state, _Gone(self._board, self.restart_server))

    # ---- who is meant

    def _named(self, token: str) -> list[FaultState]:
        turn, step, tool = map(int, token.split("."))
        return [state for state in self._board.of_turn(turn) if _names(state, step, tool)]


def about_bytes(fault: object) -> bool:
    """Whether a fault strikes one connection at a byte."""
    return isinstance(fault, WireFault) and fault.reach == "connection"


def _names(state: FaultState, step: int, tool: int) -> bool:
    at = state.planned.trigger
    if state.healed.is_set():
        return False
    return isinstance(at, AtTool) and (state.sticky or (at.step, at.tool) == (step, tool))


@dataclass
class _Gone:
    """A killed server, as a strike: healing it brings the server back."""

    board: InjectorState
    restart: Callable[[], Awaitable[None]]

    async def fired(self, timeout_s: float) -> Proof | None:
        """Whoever killed it has the proof."""
        return None

    async def heal(self) -> None:
        """Start it again."""
        try:
            await self.restart()
        except Exception as wrong:  # whatever it died of, the next turn would be played without a tool host
            self.board.break_(NetworkError(str(wrong)))
