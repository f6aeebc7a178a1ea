"""A TLS proxy from an agent's private network to a link: it decrypts, and forwards every byte as it comes.

    agent ── TLS ──▶ TlsProxy ── plain ──▶ link ──▶ fake        faults act on the plain bytes, at exact positions

The agent sees what the link does: FIN is a proper end, RST is RST, silence is silence. The proxy connects to the link
before it reads from the agent, so that a refused link resets the agent's connection at once.
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

CLOSE_NOTIFY_S = 1.0
"""How long the agent may take to answer our TLS close_notify before we send FIN."""
RESETTING = struct.pack("ii", 1, 0)


class _TlsEndpoint(asyncio.Protocol):
    """One of the two connections; forwards what it receives to the other one."""

    def __init__(self, other: "_TlsEndpoint | None" = None) -> None:
        self.transport: asyncio.Transport | None = None
        self.gone = asyncio.get_running_loop().create_future()
        self.other = other
        if other is not None:
            other.other = self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if peer := self._peer:
            peer.write(data)

    def pause_writing(self) -> None:
        if peer := self._peer:
            peer.pause_reading()

    def resume_writing(self) -> None:
        if peer := self._peer:
            peer.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the other connection too: neither TLS nor a link can be half open."""
        if not self.gone.done():
            self.gone.set_result(None)
        if (peer := self._peer) and exc is not None:
            reset_on_close(peer.get_extra_info("socket"))
            peer.abort()
        elif peer:
            peer.close()

    @property
    def _peer(self) -> asyncio.Transport | None:
        return self.other.transport if self.other is not None else None


class TlsProxy:
    """Forwards the connections of one listening socket. An async context manager."""

    def __init__(
        self,
        listening: socket.socket,
        upstream: Address,
        tls: ssl.SSLContext | None = None,
        distrusted: Callable[[str], None] = lambda alert: None,
    ) -> None:
        """`listening` is closed at the end; without `tls` bytes stay as they are; `distrusted` gets a TLS alert."""
        self._listening, self._upstream, self._tls, self._distrusted = listening, upstream, tls, distrusted
        self._open: set[asyncio.Task[None]] = set()
        self._instead: tuple[ssl.SSLContext, Callable[[str | None], None]] | None = None

    def show_instead(
        self, tls: ssl.SSLContext | None, shown: Callable[[str | None], None] = lambda refusal: None
    ) -> None:
        """Show another certificate from now on, None: the proxy's own. `shown` gets how it was refused, or None."""
        self._instead = (tls, shown) if tls is not None else None

    async def __aenter__(self) -> Self:
        self._listening.setblocking(False)
        self._accepting = asyncio.create_task(self._accept())
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for task in (self._accepting, *self._open):
            task.cancel()
        await asyncio.gather(self._accepting, *self._open, return_exceptions=True)
        await asyncio.sleep(0)  # asyncio closes aborted transports in the next turn of its loop
        self._listening.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            agent, _ = await loop.sock_accept(self._listening)
            task = asyncio.create_task(self._pass(agent))
            self._open.add(task)
            task.add_done_callback(self._open.discard)
            task.add_done_callback(partial(_close, agent))  # also if the task was cancelled before its first step

    async def _pass(self, agent: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            transport, link = await loop.create_connection(_TlsEndpoint, *self._upstream)
        except OSError:
            reset_on_close(agent)
            return
        transport.pause_reading()
        inside = _TlsEndpoint(link)
        try:
            await self._enter(agent, inside)
            transport.resume_reading()
            await asyncio.gather(inside.gone, link.gone)
        finally:
            for end in (inside, link):
                # Python before 3.11.5 cannot abort a closed TLS transport.
                with contextlib.suppress(AttributeError):
                    if end.transport is not None:
                        end.transport.abort()

    async def _enter(self, agent: socket.socket, inside: _TlsEndpoint) -> None:
        loop = asyncio.get_running_loop()
        agent.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        shutdown_s = CLOSE_NOTIFY_S if self._tls else None
        tls, shown = self._instead or (self._tls, None)
        try:
            await loop.connect_accepted_socket(lambda: inside, agent, ssl=tls, ssl_shutdown_timeout=shutdown_s)
        except OSError as wrong:  # the agent rejected our certificate, or closed the connection
            alert = (wrong.reason or "") if isinstance(wrong, ssl.SSLError) else ""
            refusal = alert.lower().replace("_", " ")
            if shown is not None:
                shown(f"the agent refused it ({refusal or 'it closed the connection'})")
            elif "ALERT" in alert:
                self._distrusted(refusal)
            inside.gone.set_result(None)
        else:
            if shown is not None:
                shown(None)


def _close(agent: socket.socket, _task: "asyncio.Task[None]") -> None:
    agent.close()


def reset_on_close(end: socket.socket) -> None:
    """Make the next close of this connection send RST."""
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETTING)
