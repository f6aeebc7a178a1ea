"""Where connections come in, so that a request can be struck alone.

While a strike is expected, a new connection waits at its first bytes. The first that has some is chosen. Who comes
behind it waits until that strike is done, and is met by the next one if there is any by then.
"""

from collections.abc import Callable
from dataclasses import dataclass

from wedgehog.harness.network.pipe import Pipe
from wedgehog.harness.network.proxied_connection import ConnectionOwner, ProxiedConnection

AGAIN_S = 0.02
"""So long those who waited behind a struck request wait on, for who wants to strike the next one too."""


@dataclass(eq=False, slots=True)
class ExpectedRequest:
    """A strike that waits for its request; `chosen` hears which one it is, whose bytes have not passed yet."""

    chosen: Callable[[ProxiedConnection], None]


class ConnectionGate:
    """The open connections of one listening port, and which of them have to wait."""

    def __init__(self, owner: ConnectionOwner, *, everybody: bool) -> None:
        """Open; where `everybody` waits behind a chosen request, those wait too that have sent some before."""
        self.passages: set[ProxiedConnection] = set()
        self._owner = owner
        self._everybody = everybody
        self._expected: list[ExpectedRequest] = []
        self._struck: ExpectedRequest | None = None

    def expect(self, chosen: Callable[[ProxiedConnection], None]) -> ExpectedRequest:
        """Have the next new connection that brings bytes chosen; say `done` in any case."""
        expected = ExpectedRequest(chosen)
        self._expected.append(expected)
        for passage in self.passages:
            passage.up.held = passage.up.held or _is_new(passage)
        return expected

    def done(self, expected: ExpectedRequest) -> None:
        """This strike is through, or not wanted any more: who waits only for it goes on."""
        if expected in self._expected:
            self._expected.remove(expected)
        if self._struck is expected:
            self._struck = None
        for passage in list(self.passages):
            if self._struck:
                return
            if self._expected and _is_new(passage):
                self.look(passage, passage.up)
            else:
                let_through(passage)

    def look(self, passage: ProxiedConnection, pipe: Pipe) -> None:
        """Something came: is it what is waited for?"""
        if self._struck or not self._expected:
            return
        if pipe is passage.up and pipe.held and pipe.waiting and _is_new(passage):
            self._struck = self._expected.pop(0)
            for other in self.passages:
                other.up.held = other.up.held or self._everybody
            self._struck.chosen(passage)

    def enter(self) -> ProxiedConnection:
        """A new connection."""
        passage = ProxiedConnection(self._owner)
        passage.up.held = bool(self._expected or self._struck)
        self.passages.add(passage)
        return passage

    def shut(self) -> None:
        """End every connection."""
        for passage in list(self.passages):
            passage.abort()


def let_through(passage: ProxiedConnection) -> None:
    """This one may go on."""
    passage.up.held = False
    passage.client.pump()


def _is_new(passage: ProxiedConnection) -> bool:
    return passage.up.carried == 0
