"""Measures how long an agent waits for a connection that is never accepted.

The backlog of our port is full, so the system neither accepts nor refuses a connection. The system's table of
connections shows who tries to connect. Linux only.
"""

import asyncio
import contextlib
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from wedgehog.harness.agents.base import Outcome, Session
from wedgehog.harness.commands.timers.probe import CONNECT
from wedgehog.harness.commands.timers.taken import Taken, TimedAttempt
from wedgehog.harness.network.ports import HOST
from wedgehog.harness.record.clock import Clock
from wedgehog.harness.record.turn_outcome import OutcomeKind

TABLE = Path("/proc/net/tcp")
SYN_SENT = "02"
"""SYN_SENT: a connect without an answer."""
TICK_S = 0.02
FILLERS = 3


class BlackHole:
    """A loopback port that neither accepts nor refuses connections while the context is open."""

    def __enter__(self) -> "BlackHole":
        """Listen, and fill the backlog."""
        self._sockets = [socket.socket()]
        self._sockets[0].bind((HOST, 0))
        self._sockets[0].listen(0)
        self.port = int(self._sockets[0].getsockname()[1])
        for _ in range(FILLERS):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex((HOST, self.port))
            self._sockets.append(filler)
        self._own = {one.getsockname()[1] for one in self._sockets}
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Close all sockets."""
        for one in self._sockets:
            one.close()

    def callers(self) -> set[int]:
        """Return the local ports of connects that are in progress."""
        lines = TABLE.read_text(encoding="ascii").splitlines()[1:]
        return set(_connecting(lines, self.port)) - self._own


def _connecting(lines: list[str], port: int) -> Iterator[int]:
    for line in lines:
        _, local, remote, state, *_ = line.split()
        if state == SYN_SENT and int(remote.partition(":")[2], 16) == port:
            yield int(local.partition(":")[2], 16)


def connect_unavailable_reason() -> str | None:
    """Return why connection attempts cannot be observed on this system; None if they can."""
    return None if sys.platform == "linux" and TABLE.exists() else "only Linux shows connects in progress"


@dataclass
class Connects:
    """The observed connects, by local port, and how long each one lasted."""

    began_s: dict[int, float] = field(default_factory=dict)
    seen_s: dict[int, float] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)

    def look(self, hole: BlackHole, now_s: float) -> None:
        """Record the connects in progress."""
        self.open = hole.callers()
        for port in self.open:
            self.began_s.setdefault(port, now_s)
            self.seen_s[port] = now_s

    def attempts(self) -> tuple[TimedAttempt, ...]:
        """Return one attempt for each connect, in order."""
        ports = sorted(self.began_s, key=self.began_s.__getitem__)
        return tuple(TimedAttempt(self.began_s[it], None if it in self.open else self.seen_s[it]) for it in ports)


async def watched(session: Session, hole: BlackHole, clock: Clock, start_s: float, look_out_s: float) -> Taken:
    """Send a message and observe the connects until the agent ends or the look-out time is over."""
    connects, begin_s = Connects(), clock.now()
    saying = asyncio.create_task(session.say("What is a hedgehog?", first=True))
    try:
        while not saying.done():
            connects.look(hole, clock.now())
            first_s = min(connects.began_s.values(), default=None)
            if clock.now() > (begin_s + start_s if first_s is None else first_s + look_out_s):
                break
            await asyncio.wait({saying}, timeout=TICK_S)
        over_s = clock.now() if saying.done() else None
        connects.look(hole, clock.now()) if over_s is None else connects.open.clear()
        if over_s is None:
            await session.end_turn(1.0)
        outcome = await saying
    finally:
        saying.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await saying
    return _taken(connects.attempts(), over_s, outcome)


def _taken(attempts: tuple[TimedAttempt, ...], over_s: float | None, outcome: Outcome) -> Taken:
    if not attempts:
        return Taken(CONNECT, skipped="it never connected to the model's address")
    said = "\n".join((outcome.answer, outcome.error, outcome.stdout, outcome.stderr, outcome.raised or ""))
    ended = over_s is not None
    kind: OutcomeKind = "silent" if not ended else "surfaced" if said.strip() else "hidden"
    return Taken(CONNECT, attempts, over_s - attempts[0].began_s if over_s is not None else None, kind, said)
