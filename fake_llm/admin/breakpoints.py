"""Gates: a reply that reaches a gate is held until the gate is opened."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wedgehog.fake_llm.observer import BEFORE_HEAD, Point


@dataclass(eq=False, slots=True)
class Breakpoint:
    """A gate in the replies of one session (None: of all): after an event, after a byte, or before the head.

    `held` are the calls that wait at the gate.
    """

    number: int
    session: str | None = None
    event: int | None = None
    byte: int | None = None
    held: list[int] = field(default_factory=list)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    _reached: asyncio.Event = field(default_factory=asyncio.Event)

    def place(self, point: Point) -> int | None:
        """Return the gate's body offset in a reply, None if the reply has no such offset."""
        if self.byte is not None:
            return self.byte if point.body < 0 or self.byte < point.body else None
        if self.event is not None:
            ends = (0, *point.frame_ends)
            return ends[self.event] if self.event < len(ends) and point.stream else None
        return BEFORE_HEAD

    async def wait(self, call: int) -> None:
        """Hold a call until the gate is opened or the call is cancelled."""
        self.held.append(call)
        self._reached.set()
        try:
            await self.opened.wait()
        finally:
            self.held.remove(call)
            if not self.held:
                self._reached.clear()

    async def reached(self, wait_s: float) -> bool:
        """Wait up to `wait_s` for a held call; return True if there is one."""
        try:
            async with asyncio.timeout(wait_s):
                await self._reached.wait()
        except TimeoutError:
            return False
        return True

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        at = {"event": self.event} if self.event is not None else {"byte": self.byte} if self.byte is not None else {}
        return {"gate": self.number, "session": self.session, "at": at or {"phase": "headers"}, "held": list(self.held)}


class Breakpoints:
    """All gates of a server."""

    def __init__(self) -> None:
        self._gates: dict[int, Breakpoint] = {}
        self._made = 0

    def hold(self, session: str | None = None, *, event: int | None = None, byte: int | None = None) -> Breakpoint:
        """Add a gate; it holds replies whose first byte is not yet written."""
        self._made += 1
        gate = self._gates[self._made] = Breakpoint(self._made, session, event, byte)
        return gate

    def get(self, number: int) -> Breakpoint | None:
        """Return a closed gate, else None."""
        return self._gates.get(number)

    def all(self, session: str | None = None) -> list[Breakpoint]:
        """Return the gates for a session (None: all gates)."""
        return [gate for gate in self._gates.values() if None in (session, gate.session) or gate.session == session]

    def open(self, gate: Breakpoint) -> None:
        """Remove a gate, and release all calls held at it."""
        self._gates.pop(gate.number, None)
        gate.opened.set()

    async def passed(self, session: str, point: Point) -> Sequence[int]:
        """Hold a reply that has reached a gate; return the offsets of later gates."""
        ahead: list[int] = []
        for gate in self.all(session):
            place = gate.place(point)
            if place == point.at:
                await gate.wait(point.call)
            elif place is not None and place > point.at:
                ahead.append(place)
        return ahead
