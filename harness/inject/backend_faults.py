"""Faults of the user's own servers: each connection that carries bytes in a turn meets the faults of its link.

Bytes of a connection count from the moment at which it is first used in the turn, or after the trigger's beacon. The
sender holds the byte before the fault's byte (the byte itself for a fault that begins at once) while it is armed.
"""

from functools import partial
from typing import Literal

from wedgehog.harness.inject.fault_state import FaultState, PlacedStrike
from wedgehog.harness.inject.link_faults import Held, LinkFaults
from wedgehog.harness.network.base import NetworkError, Proof
from wedgehog.harness.record.events.run import Trouble
from wedgehog.harness.record.events.service import BackendClosed, BackendOpened, BackendUsed, ClosedBy
from wedgehog.harness.scenario.link_triggers import AtBackend
from wedgehog.harness.services.backend import BackendConnection, BackendStream, Closer, Limit, Way

Use = dict[Way, int]


class BackendFaults:
    """Watches connections (a `BackendObserver`), turns and beacons, and fires."""

    def __init__(self, run: LinkFaults) -> None:
        self._run = run
        self._set_off: list[FaultState] = []
        """Faults whose beacon has come."""
        self._met: dict[int, set[BackendConnection]] = {}
        """The connections that count for each fault, by its index."""
        self._armed: dict[BackendConnection, list[tuple[FaultState, PlacedStrike]]] = {}
        self._open: dict[str, dict[BackendConnection, Use]] = {}
        """The open connections of each link, with what they had carried when the turn began."""
        self._ended: dict[str, list[Use]] = {}
        """What the connections that ended in this turn carried in it."""
        self._slow: list[tuple[str, Way, Limit]] = []
        """What makes all connections of a link slow in one direction."""

    # ---- turns and beacons

    def before_turn(self) -> None:
        """Count the turn's bytes from here."""
        for connections in self._open.values():
            connections.update({connection: _arrived(connection) for connection in connections})
        self._ended.clear()

    def after_turn(self, turn: int) -> None:
        """Record what each link carried in the turn."""
        for link, connections in self._open.items():
            uses = [*self._ended.get(link, []), *(_since(it, before) for it, before in connections.items())]
            used = [use for use in uses if any(use.values())]
            up, down = (sum(use[way] for use in used) for way in ("up", "down"))
            if used:
                event = BackendUsed(link=link, turn=turn, connections=len(used), bytes_up=up, bytes_down=down)
                self._run.history.add_unless_sealed(event)

    def beacon(self, token: str, phase: Literal["started", "done"]) -> None:
        """The faults that this beacon sets off meet the next bytes."""
        turn, step, tool = map(int, token.split("."))
        for state in self._run.states:
            at = state.at
            if isinstance(at, AtBackend) and (at.turn, at.step, at.tool, at.when) == (turn, step, tool, phase):
                self._set_off.append(state)

    # ---- connections

    def opened(self, link: str, connection: BackendConnection) -> None:
        """It has carried nothing yet, and meets what makes its link slow."""
        for name, way, limit in self._slow:
            if name == link and not limit.healed.is_set():
                connection.streams[way].meets(limit._replace(at=0))
        self._open.setdefault(link, {})[connection] = _arrived(connection)
        self._run.history.add_unless_sealed(BackendOpened(link=link, connection=connection.number))

    def in_hand(self, link: str, connection: BackendConnection) -> None:
        """Plan the faults of its link that this connection has not met yet."""
        for state in self._waiting(link):
            met = self._met.setdefault(state.index, set())
            if connection not in met:
                met.add(connection)
                if state.meets_one_more():
                    self._begin(state, connection)

    def closed(self, link: str, connection: BackendConnection, by: Closer | None) -> None:
        """It has ended."""
        self._ended.setdefault(link, []).append(_since(connection, self._open[link].pop(connection)))
        struck = self._armed.pop(connection, [])
        if by == "agent":
            self._prove_by_what_was_sent(connection, struck)
        for state, armed in struck:
            if state.wire is not None and state.wire.ends == "stall" and not state.healed.is_set():
                self._run.left(state, armed)
        self._run.history.add_unless_sealed(
            BackendClosed(
                link=link,
                connection=connection.number,
                by=self._closer(link, struck, by),
                bytes_up=connection.streams["up"].arrived,
                bytes_down=connection.streams["down"].arrived,
                faults=tuple(state.planned.fault.name for state, _ in struck),
            )
        )

    def _prove_by_what_was_sent(
        self, connection: BackendConnection, struck: list[tuple[FaultState, PlacedStrike]]
    ) -> None:
        """Prove a slow fault if the agent closed before a late byte passed: bytes were sent while the fault was on."""
        for state, armed in struck:
            stream = connection.streams["up" if state.at.in_request else "down"]
            if state.slows and not state.healed.is_set() and (sent := stream.carried - (armed.at or 0)) > 0:
                self._run.proved(state, armed, Proof(armed.at, f"{sent} bytes were sent while it was in place"))

    def trouble(self, what: str) -> None:
        """The user's server is gone: that is no verdict on the agent."""
        if not self._run.broken.is_set():
            self._run.broken.set()
            self._run.history.add_unless_sealed(Trouble(what=what))

    def _closer(self, link: str, struck: list[tuple[FaultState, PlacedStrike]], by: Closer | None) -> ClosedBy:
        if by is None:
            return "run"
        cut = any(state.wire is not None and state.wire.ends in ("fin", "rst") for state, _ in struck)
        on_link = (state for state in self._run.states if state.planned.link == link and not state.healed.is_set())
        ports = (state for state in on_link if state.wire is not None and state.wire.closes_port)
        shut = any(state.armed or state.busy.locked() for state in ports)  # locked while the port closes
        healed = any(state.healed.is_set() and not state.slows for state, _ in struck)
        return "fault" if cut or shut or healed else by

    # ---- arming

    def _waiting(self, link: str) -> list[FaultState]:
        """Faults on this link that the next bytes meet."""
        of_turn = (state for state in self._run.of_turn(self._run.turn) if _from_start(state))
        waiting = (*of_turn, *self._set_off)
        return [state for state in waiting if state.planned.link == link and not state.healed.is_set()]

    def _begin(self, state: FaultState, connection: BackendConnection) -> None:
        """Plan it now, or after its delay, during which bytes pass."""
        if state.at.after_s:
            self._run.spawn(self._later(state, connection))
        else:
            self._plan(state, connection)

    async def _later(self, state: FaultState, connection: BackendConnection) -> None:
        if await self._run.delay(state):
            self._plan(state, connection)

    def _plan(self, state: FaultState, connection: BackendConnection) -> None:
        stream = connection.streams["up" if state.at.in_request else "down"]
        byte = stream.carried + state.at.first_byte
        stop = byte if state.at_byte else max(stream.carried, byte - 1)
        stream.at(stop, partial(self._arm, state, connection, stream, byte))

    async def _arm(self, state: FaultState, connection: BackendConnection, stream: BackendStream, byte: int) -> None:
        if state.healed.is_set():
            return
        held = Held(stream.link, stream.conn, 0, f"the bytes of {state.planned.link} were held")
        try:
            armed = await self._run.inject(state, held, byte, delayed=True)
        except NetworkError as wrong:
            self._run.fail(wrong)
            return
        if armed is not None:
            self._armed.setdefault(connection, []).append((state, armed))
        if armed is not None and state.wire is not None:
            self._limit(state.planned.link, stream, Limit(state.wire, byte, state.healed))

    def _limit(self, link: str, stream: BackendStream, limit: Limit) -> None:
        """Let an armed fault act on the count of what arrives, on each stream that it holds for."""
        if limit.fault.reach == "connection":
            stream.meets(limit)
            return
        self._slow.append((link, stream.way, limit))
        for connection in self._open.get(link, {}):
            other = connection.streams[stream.way]
            other.meets(limit._replace(at=other.carried))


def _from_start(state: FaultState) -> bool:
    return isinstance(state.at, AtBackend) and state.at.tool is None


def _arrived(connection: BackendConnection) -> Use:
    return {way: stream.arrived for way, stream in connection.streams.items()}


def _since(connection: BackendConnection, before: Use) -> Use:
    return {way: count - before[way] for way, count in _arrived(connection).items()}
