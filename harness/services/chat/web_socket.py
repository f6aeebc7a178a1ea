"""Our side of a WebSocket, over which a chat service brings messages. It counts the bytes that it writes."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import WSMsgType, web


class CountedSocket:
    """One connection. Frames are not compressed, so that a place in the stream is known."""

    def __init__(self, request: web.BaseRequest, wrote: Callable[[int], None]) -> None:
        """`wrote` is told of each number of bytes."""
        self.request, self._wrote = request, wrote
        self.ws = web.WebSocketResponse(compress=False, timeout=0.5, autoping=False)
        self.pump: asyncio.Task[None] | None = None
        """Sends the messages."""

    async def open(self) -> None:
        """Answer the request."""
        writer = await self.ws.prepare(self.request)
        self._wrote(writer.output_size)

    async def receive(self, patience_s: float) -> str | None:
        """The next text; None when the connection has ended. Errors: TimeoutError."""
        while True:
            message = await self.ws.receive(patience_s)
            if message.type == WSMsgType.PING:
                self._wrote(_frame_size(len(message.data)))
                with contextlib.suppress(ConnectionError):
                    await self.ws.pong(message.data)
            elif message.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                return str(message.data) if message.type == WSMsgType.TEXT else message.data.decode()
            elif message.type != WSMsgType.PONG:
                return None

    async def send(self, payload: Mapping[str, Any]) -> None:
        """Send JSON; a connection that is closing takes none."""
        text = json.dumps(payload)
        self._wrote(_frame_size(len(text.encode())))
        with contextlib.suppress(ConnectionError):
            await self.ws.send_str(text)

    async def ping(self) -> None:
        """Ask whether the peer is there."""
        self._wrote(_frame_size(0))
        with contextlib.suppress(ConnectionError):
            await self.ws.ping()

    async def close(self, code: int) -> None:
        """End it with a code."""
        self._wrote(_frame_size(2))
        await self.ws.close(code=code)

    def stop(self) -> None:
        """Send no more messages."""
        if self.pump is not None:
            self.pump.cancel()


@dataclass(frozen=True, slots=True)
class Outbound:
    """What each message of a chat service passes before it goes out over a WebSocket, of any vendor."""

    time_scale: float
    ready: asyncio.Event
    """Set when an agent is there."""
    hand_over: Callable[[int, str], bool]
    """Called with a message just before it goes out; false: it is refused, and the connection ends."""
    gate: Callable[[web.BaseRequest], Awaitable[None]]
    """Holds a message back."""
    again: Callable[[str], None]
    """Called with a message that had gone out before."""
    wrote: Callable[[web.BaseRequest, int], None]
    """Called with each number of bytes."""

    def connection(self, request: web.BaseRequest) -> CountedSocket:
        """The WebSocket that a request asks for."""
        return CountedSocket(request, lambda count: self.wrote(request, count))


def _frame_size(payload: int) -> int:
    """Of an unmasked frame."""
    return payload + (2 if payload < 126 else 4 if payload < 65536 else 10)
