"""Before a Toxiproxy proxy: while one request is struck, nobody else's bytes may come to it.

A limit is a setting of the whole proxy. On replies the fake provider holds all others back; requests come from agents,
so something must stand where they come in:

    agents ═▶ turnstile ═▶ Toxiproxy ═▶ fake

While a strike is expected, a new connection waits at its first bytes. The first that has some is chosen; then everybody
waits, until the limit stands, the chosen one has met it, and it is lifted again.
"""

import asyncio
from collections import deque
from typing import Self

from wedgehog.harness.network.base import Address
from wedgehog.harness.network.passage import Leg, Passage
from wedgehog.harness.network.pipe import Pipe
from wedgehog.harness.ports import HOST, free_port


class Turnstile:
    """A listening port whose connections go to `upstream`, one at a time where that is wanted."""

    tells_resets = True

    def __init__(self, upstream: Address) -> None:
        """Closed; `listen` opens it."""
        self.upstream = upstream
        self.address: Address = (HOST, free_port())
        self.passages: set[Passage] = set()
        self._expecting: deque[asyncio.Future[Passage]] = deque()
        self._chosen: Passage | None = None
        self._server: asyncio.Server | None = None

    async def listen(self) -> Self:
        """Open the port, always the same."""
        self._server = await asyncio.get_running_loop().create_server(self._accept, *self.address)
        return self

    def shut(self) -> None:
        """Close the port and every connection."""
        if self._server:
            self._server.close()
            self._server = None
        for passage in list(self.passages):
            passage.abort()

    async def close(self) -> None:
        """For good: nobody is expected any more."""
        for waiting in self._expecting:
            waiting.cancel()
        self._expecting.clear()
        self.shut()
        await asyncio.sleep(0)

    # ---- whom to strike

    async def next_one(self) -> Passage:
        """The next new connection that brings bytes, which have not passed yet; everybody waits until `open`."""
        waiting: asyncio.Future[Passage] = asyncio.get_running_loop().create_future()
        self._expecting.append(waiting)
        for passage in self.passages:
            passage.up.held = passage.up.held or _is_new(passage)
        try:
            return await waiting
        except asyncio.CancelledError:
            self._forget(waiting)
            raise

    def let(self, passage: Passage) -> None:
        """This one may go on."""
        passage.up.held = False
        passage.client.pump()

    def open(self) -> None:
        """Everybody may, but for new ones where the next strike is expected."""
        self._chosen = None
        for passage in list(self.passages):
            if self._expecting and _is_new(passage):
                self.look(passage, passage.up)
            elif self._chosen is None:
                self.let(passage)

    # ---- passages

    def look(self, passage: Passage, pipe: Pipe) -> None:
        """Something came: if it is what is waited for, everybody else waits."""
        if pipe is not passage.up or not (pipe.held and pipe.waiting and _is_new(passage)):
            return
        if self._chosen is None and self._expecting:
            self._chosen = passage
            for other in self.passages:
                other.up.held = True
            self._expecting.popleft().set_result(passage)

    def ended(self, passage: Passage) -> None:
        """A passage is history."""
        self.passages.discard(passage)

    def _accept(self) -> Leg:
        passage = Passage(self)
        passage.up.held = bool(self._expecting) or self._chosen is not None
        self.passages.add(passage)
        return passage.accept()

    def _forget(self, waiting: "asyncio.Future[Passage]") -> None:
        if waiting in self._expecting:
            self._expecting.remove(waiting)
        if waiting.done() and not waiting.cancelled():
            self._chosen = None
        if self._chosen is None:
            self.open()


def _is_new(passage: Passage) -> bool:
    return passage.up.carried == 0
