"""A port of the fake provider, and its connections: each reads requests and answers them in their order."""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Final, Self, cast

from wedgehog.fake_llm.http_request import Head, Incoming, RequestReader
from wedgehog.fake_llm.observer import Conn
from wedgehog.fake_llm.request import ConnectionMemory
from wedgehog.fake_llm.websocket import FrameReader, accepted

ROOM: Final = 64 * 2**10
_CLOSE_WITHIN_S: Final = 5.0
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class Connection(asyncio.BufferedProtocol):
    """Answers requests in their order: `answer` writes a reply, and a hang-up cancels it.

    `carried` counts the bytes sent to the client; `by_us` is True if the server ends the connection. Bytes arrive in
    `room`, which the connections of one event loop may share: else asyncio allocates 256 KB for each read.
    """

    conn: Conn
    transport: asyncio.Transport

    def __init__(
        self,
        opened: Callable[["Connection"], Conn],
        answer: Callable[["Connection", Incoming], Coroutine[None, None, None]],
        closed: Callable[["Connection"], None],
        room: bytearray | None = None,
    ) -> None:
        """`opened` and `closed` are called when the client connects and when the connection is lost."""
        self.carried = 0
        self.by_us = False
        self._is_lost = False
        self._opened, self._answer, self._closed = opened, answer, closed
        self._room = memoryview(room or bytearray(ROOM))
        self._reader: RequestReader | FrameReader = RequestReader(self._go_ahead)
        self.memory: ConnectionMemory | None = None
        """What a WebSocket remembers; None: the connection is none."""
        self._control_frames = b""
        self._close_sent = False
        self._waiting: deque[Incoming] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_busy(self) -> bool:
        """True while a request is being answered."""
        return self._task is not None

    @property
    def is_active(self) -> bool:
        """True while the client is connected or a request is being answered."""
        return self.is_busy or not self._is_lost

    def write(self, data: bytes) -> None:
        """Send bytes at once."""
        self.carried += len(data)
        self.transport.write(data)

    def upgrade(self, head: Head, memory: ConnectionMemory, first: bytes) -> None:
        """Go on as a WebSocket: each message is a request with this head; the frames `first` are sent first."""
        self.memory = memory
        self._reader = FrameReader(head, self._control)
        self.write(accepted(head) + first)

    def _control(self, frame: bytes, closes: bool) -> None:
        """A pong waits for the end of the frame that is being written; a close ends the connection."""
        if not closes:
            self._control_frames += frame
            if self._task is None:
                self.flush_control()
        elif self._task is not None:
            self._task.cancel()  # the client hangs up
        else:
            if not self._close_sent:
                self.write(frame)
            self.transport.close()

    def flush_control(self) -> None:
        """Send the pongs that wait; the last byte sent was a frame's."""
        if self._control_frames:
            self.write(self._control_frames)
            self._control_frames = b""

    def close_sent(self) -> None:
        """The reply ended with a close frame: the client answers it, and says nothing else."""
        self._close_sent = True
        self._waiting.clear()

    async def can_wait(self) -> None:
        """Continue in a task; await this before anything that takes time."""
        if self._task is None:
            await asyncio.sleep(0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Report the connection."""
        self.transport = cast(asyncio.Transport, transport)  # uvloop's class is not a subclass
        self.conn = self._opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next read."""
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Take the bytes of one read from the buffer."""
        self.data_received(self._room[:nbytes])

    def data_received(self, data: bytes | memoryview) -> None:
        """Answer the requests that are complete."""
        came = self._reader.feed(data)
        if self.memory is not None and self.is_busy:
            came = [replace(it, overlaps=True) for it in came]
        self._waiting.extend([] if self._close_sent else came)
        if self._waiting and self._task is None:
            self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop answering."""
        self._is_lost = True
        self._waiting.clear()
        if self._task is not None:
            self._task.cancel()
        self._closed(self)

    def _begin(self) -> None:
        """Answer at once; if the answer takes time, continue it in a task."""
        answering = self._answer_all()
        try:
            waits_for = answering.send(None)
        except StopIteration:
            return
        assert waits_for is None, "what takes time is awaited after `can_wait`"  # noqa: S101
        self._task = asyncio.get_running_loop().create_task(answering)

    def _go_ahead(self) -> None:
        self.write(_CONTINUE)

    async def _answer_all(self) -> None:
        try:
            while self._waiting and not self.transport.is_closing():
                await self._answer(self, self._waiting.popleft())
                self.flush_control()
                if self.by_us:
                    self.transport.close()
        except asyncio.CancelledError:
            pass  # A hang-up; the reply that it cuts off has reported it.
        except Exception as bug:
            self.transport.abort()
            trouble = {"message": "a request could not be answered", "exception": bug, "protocol": self}
            asyncio.get_running_loop().call_exception_handler(trouble)
        finally:
            self._task = None


class Listener(ABC):
    """A port whose `connections` are answered; use it as an async context manager. Port 0 takes a free port."""

    def __init__(self, port: int = 0, *, listens: bool = True) -> None:
        """Without `listens` the caller accepts connections, each with `connection()`."""
        self.host, self.port = "127.0.0.1", port
        self.connections: dict[Connection, None] = {}
        """Oldest first: a set has another order in each process."""
        self._listens = listens
        self._listener: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://{self.host}:{self.port}"

    @abstractmethod
    def connection(self) -> Connection:
        """Return the asyncio protocol that answers one client."""

    async def __aenter__(self) -> Self:
        if self._listens:
            loop = asyncio.get_running_loop()
            self._listener = await loop.create_server(self.connection, self.host, self.port, backlog=1024)
            self.port = self._listener.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *error: object) -> None:
        """Stop listening and drop every connection, held replies included; leaves no task."""
        if self._listener:
            self._listener.close()
        dropped = list(self.connections)
        for connection in dropped:
            connection.transport.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_WITHIN_S):
                while any(one.is_active for one in dropped):  # noqa: ASYNC110  there is no event to wait for
                    await asyncio.sleep(0)
