"""Faults of our own tools: results of the tool host, and bytes of the tool host, the database and the chat."""

from collections.abc import Iterator, Sequence

from wedgehog.harness.faults.chat_fault import ChatFault, ChatRefusal
from wedgehog.harness.faults.process_fault import ProcessFault
from wedgehog.harness.faults.result_fault import CallRefusal, Result, ResultFault
from wedgehog.harness.inject.fault_state import FaultState, PlacedStrike
from wedgehog.harness.inject.link_faults import Held, LinkFaults
from wedgehog.harness.network.base import Address
from wedgehog.harness.scenario.link_triggers import AtChat, AtQuery
from wedgehog.harness.scenario.trigger import HOST, PIPE, STORE, AtTool, BeforeRequest

ConnectionPoint = tuple[Address, int]
"""A connection as the link's upstream knows it, and how many bytes it has carried towards the agent."""


class ServiceFaults:
    """Asked by the tool host, the database and the chat service before they answer."""

    def __init__(self, run: LinkFaults) -> None:
        self._run = run
        self._at: dict[Address, tuple[FaultState, PlacedStrike]] = {}
        """What is armed on which connection of the chat service."""

    def at_its_place(self, state: FaultState) -> bool:
        """Whether a fault fires where the host or the database asks for it, and not by the beacon as such."""
        on_service = state.planned.link in (HOST, STORE)
        return isinstance(state.planned.fault, ResultFault) or (on_service and about_bytes(state))

    def at_its_server(self, state: FaultState) -> bool:
        """Whether a fault hits the tool host's server or its link, on which a result may be under way."""
        fault, link = state.planned.fault, state.planned.link
        return link in (HOST, PIPE) or (isinstance(fault, ProcessFault) and fault.at_server)

    # ---- results

    def refused(self, token: str) -> tuple[CallRefusal | None, Sequence[FaultState]]:
        """The refusal of the call turn.step.call, None if it may begin, and the faults that fire as it is written."""
        states = [state for state in self._named(token) if _refusal(state) and state.meets_one_more()]
        return (_refusal(states[0]) if states else None), states

    def refused_request(self, authorized: bool) -> tuple[CallRefusal | None, Sequence[FaultState]]:
        """The same for any other request to the tool host, and for a call that may begin."""
        states = [state for state in self._run.of_turn(self._run.turn) if _refuses(state) and state.meets_one_more()]
        faults = (state.planned.fault for state in states)
        refusals = [it.on_request(authorized=authorized) for it in faults if isinstance(it, ResultFault)]
        return next(iter(refusals), None), states

    def asked(self, token: str, result: Result) -> tuple[Result, Sequence[FaultState]]:
        """The result of the call turn.step.call as the plan leaves it, and the faults that fire as it is written."""
        later = []
        for state in self._named(token):
            fault = state.planned.fault
            if isinstance(fault, ResultFault) and not _refusal(state) and state.meets_one_more():
                result = fault.on_result(result)
                later.append(state)
        self.written([state for state in later if _at_once(state)])
        return result, [state for state in later if not _at_once(state)]

    def written(self, faults: Sequence[FaultState]) -> None:
        """The response that these faults changed has been written."""
        for state in faults:
            if isinstance(state.planned.fault, ResultFault):
                self._run.fired(state, state.planned.fault.proof)

    # ---- bytes

    async def at(self, token: str, point: ConnectionPoint | None) -> None:
        """A call's result is held before its first byte."""
        for state in self._named(token):
            if state.planned.link == HOST and about_bytes(state) and state.meets_one_more():
                await self._inject(state, point)

    async def at_query(self, turn: int, point: ConnectionPoint) -> None:
        """The database's reply to the turn's next query is held before its first byte."""
        for state in self._run.of_turn(turn):
            if isinstance(state.at, AtQuery) and not state.healed.is_set() and state.meets_one_more(state.at.query):
                await self._inject(state, point)

    async def at_chat(self, what: str, point: ConnectionPoint) -> None:
        """A chat response is held before its first byte; with the poll, faults of the next request are armed too."""
        for state, at in self._of_chat():
            if isinstance(state.planned.fault, ChatFault):
                continue
            if at.in_request:
                if what == "poll" and not state.armed:
                    await self._run.before_request(state)
            elif at.chat == what and state.meets_one_more() and (armed := await self._inject(state, point)):
                self._at[point[0]] = (state, armed)

    def chat_refusal(self, what: str) -> ChatRefusal | None:
        """The response with which the chat service refuses this request; None: it does what it is asked for."""
        found: ChatRefusal | None = None
        for state, at in self._of_chat():
            fault = state.planned.fault
            if isinstance(fault, ChatFault) and at.chat == what and state.meets_one_more():
                self._run.fired(state, "the chat service refused the request")
                found = found or fault.on_request()
        return found

    def _of_chat(self) -> Iterator[tuple[FaultState, AtChat]]:
        """Faults of the turn that are aimed at a request to the chat; one that is healed by then is left out."""
        for state in self._run.of_turn(self._run.turn):
            if isinstance(state.at, AtChat) and not state.healed.is_set():
                yield state, state.at

    @property
    def holds_chat(self) -> bool:
        """Whether the agent waits for a response of the chat service that a fault keeps back."""
        return bool(self._at)

    def left_chat(self, conn: Address) -> None:
        """This connection of the chat service is gone."""
        if conn in self._at:
            self._run.left(*self._at.pop(conn))

    async def _inject(self, state: FaultState, point: ConnectionPoint | None) -> PlacedStrike | None:
        link, (conn, written) = self._run.links.get(state.planned.link), point or (None, 0)
        held = Held(link, conn, written, "its answer was held back", counts=False)
        return await self._run.inject(state, held, state.at.first_byte)

    def _named(self, token: str) -> list[FaultState]:
        """Faults whose trigger names this call."""
        turn, step, tool = map(int, token.split("."))
        return [state for state in self._run.of_turn(turn) if _names(state, step, tool)]


def about_bytes(state: FaultState) -> bool:
    """Whether a fault hits one connection at a byte."""
    return state.wire is not None and state.wire.reach == "connection"


def _refusal(state: FaultState) -> CallRefusal | None:
    fault = state.planned.fault
    return fault.on_call() if isinstance(fault, ResultFault) else None


def _refuses(state: FaultState) -> bool:
    """Whether a fault refuses every request of its turn."""
    fault, connects = state.planned.fault, isinstance(state.at, BeforeRequest)
    return connects and isinstance(fault, ResultFault) and fault.refuses_requests and not state.healed.is_set()


def _at_once(state: FaultState) -> bool:
    return isinstance(state.planned.fault, ResultFault) and state.planned.fault.strikes_at_once


def _names(state: FaultState, step: int, tool: int) -> bool:
    at = state.at
    if not isinstance(at, AtTool) or state.healed.is_set():
        return False
    return state.sticky or (at.step, at.tool) == (step, tool)
