"""Gates: replies that have come to one are held there until somebody opens it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wedgehog.fake_llm.observer import BEFORE_HEAD, Point


@dataclass(eq=False, slots=True)
class Breakpoint:
    """One place, in the replies of one session or (None) of all: behind an event, behind a byte, or before the head.

    `held` are the calls that wait there.
    """

    number: int
    session: str | None = None
    event: int | None = None
    byte: int | None = None
    held: list[int] = field(default_factory=list)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    _reached: asyncio.Event = field(default_factory=asyncio.Event)

    def place(self, point: Point) -> int | None:
        """Return the body offset where it stands in a reply, None where the reply has no such place."""
        if self.byte is not None:
            return self.byte if point.body < 0 or self.byte < point.body else None
        if self.event is not None:
            ends = (0, *point.frame_ends)
            return ends[self.event] if self.event < len(ends) and point.stream else None
        return BEFORE_HEAD

    async def wait(self, call: int) -> None:
        """Hold a call here until the gate is opened; it is let go of where it is cancelled."""
        self.held.append(call)
        self._reached.set()
        try:
            await self.opened.wait()
        finally:
            self.held.remove(call)
            if not self.held:
                self._reached.clear()

    async def reached(self, wait_s: float) -> bool:
        """Wait until a call is held here, so long at most, and tell if one is."""
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
    """All gates of a server. Those that a reply meets are asked in the order in which they stand in it."""

    def __init__(self) -> None:
        """Everything passes."""
        self._gates: dict[int, Breakpoint] = {}
        self._made = 0

    def hold(self, session: str | None = None, *, event: int | None = None, byte: int | None = None) -> Breakpoint:
        """Set up a gate; replies whose first byte is not on its way yet will stop at it."""
        self._made += 1
        gate = self._gates[self._made] = Breakpoint(self._made, session, event, byte)
        return gate

    def get(self, number: int) -> Breakpoint | None:
        """Return a gate that is not open yet."""
        return self._gates.get(number)

    def all(self, session: str | None = None) -> list[Breakpoint]:
        """Return those that hold replies of a session (None: of any)."""
        return [gate for gate in self._gates.values() if None in (session, gate.session) or gate.session == session]

    def open(self, gate: Breakpoint) -> None:
        """Let go of all that is held at a gate, and take it away."""
        self._gates.pop(gate.number, None)
        gate.opened.set()

    async def passed(self, session: str, point: Point) -> Sequence[int]:
        """Hold a reply where it has come to a gate, and return where others stand before it."""
        ahead: list[int] = []
        for gate in self.all(session):
            place = gate.place(point)
            if place == point.at:
                await gate.wait(point.call)
            elif place is not None and place > point.at:
                ahead.append(place)
        return ahead
