"""A doorway from an agent's own network to a link: it takes TLS off, and passes every byte on as it comes.

    agent ── TLS ──▶ doorway ── plain ──▶ link ──▶ fake        faults strike the plain bytes, so they are exact

What the link does is what the agent sees: FIN is a proper end, RST is RST, silence is silence. The link is called
before the agent's first byte is read, so that a link that refuses is known at once (the agent's connection is reset).
"""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Callable
from functools import partial
from typing import Self, cast

from wedgehog.harness.network.base import Address

FAREWELL_S = 1.0
"""For the agent to answer our TLS farewell, before FIN comes without it."""
RESETTING = struct.pack("ii", 1, 0)


class _End(asyncio.Protocol):
    """One of the two connections; what comes in at one goes out at the other."""

    def __init__(self, other: "_End | None" = None) -> None:
        self.transport: asyncio.Transport | None = None
        self.gone = asyncio.get_running_loop().create_future()
        self.other = other
        if other is not None:
            other.other = self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Both ends go together: TLS has no half-open connection, and neither has a link."""
        if not self.gone.done():
            self.gone.set_result(None)
        if self.other is None or self.other.transport is None:
            return
        if exc is not None:
            self.other.reset()
        else:
            self.other.transport.close()

    def reset(self) -> None:
        """End it by RST."""
        if self.transport is not None:
            resets(self.transport.get_extra_info("socket"))
            self.transport.abort()


class TlsProxy:
    """Serves one listening socket. An async context manager."""

    def __init__(
        self,
        listening: socket.socket,
        upstream: Address,
        tls: ssl.SSLContext | None = None,
        distrusted: Callable[[str], None] = lambda alert: None,
    ) -> None:
        """`listening` is closed with it; without `tls` the bytes are passed on as they are.

        `distrusted` hears the alert of an agent that does not take our certificate.
        """
        self._listening, self._upstream, self._tls, self._distrusted = listening, upstream, tls, distrusted
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        """Accept."""
        self._listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Hang up on everybody."""
        for task in (self._accepting, *self._open):
            task.cancel()
        await asyncio.gather(self._accepting, *self._open, return_exceptions=True)
        await asyncio.sleep(0)  # what was aborted just now is closed by the loop's next turn
        self._listening.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            agent, _ = await loop.sock_accept(self._listening)
            task = asyncio.create_task(self._pass(agent))
            self._open.add(task)
            task.add_done_callback(self._open.discard)
            task.add_done_callback(partial(_close, agent))  # however early it was stopped

    async def _pass(self, agent: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            transport, link = await loop.create_connection(_End, *self._upstream)
        except OSError:
            resets(agent)
            return
        transport.pause_reading()
        inside = _End(link)
        try:
            await self._enter(agent, inside)
            transport.resume_reading()
            await asyncio.gather(inside.gone, link.gone)
        finally:
            for end in (inside, link):
                if end.transport is not None:
                    with contextlib.suppress(AttributeError):  # Python before 3.11.5 can't abort TLS that is gone
                        end.transport.abort()

    async def _enter(self, agent: socket.socket, inside: _End) -> None:
        loop = asyncio.get_running_loop()
        agent.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        farewell_s = FAREWELL_S if self._tls else None
        try:
            await loop.connect_accepted_socket(lambda: inside, agent, ssl=self._tls, ssl_shutdown_timeout=farewell_s)
        except OSError as wrong:  # it does not believe us, or it went away
            alert = (wrong.reason or "") if isinstance(wrong, ssl.SSLError) else ""
            if "ALERT" in alert:
                self._distrusted(alert.lower().replace("_", " "))
            inside.gone.set_result(None)


def _close(agent: socket.socket, _task: "asyncio.Task[None]") -> None:
    agent.close()


def resets(end: socket.socket) -> None:
    """Whoever closes this connection now sends RST."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETTING)
