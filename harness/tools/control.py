"""The small connection on which a tool server asks the harness what to answer: JSON lines, on loopback, with a secret.

```
server: {"secret": "…", "pid": 4711, "way": "http"}                          harness: {"tools": […]}
server: {"id": 1, "do": "call", "name": "weather", "arguments": {…}}          harness: {"id": 1, "text": "21 °C", …}
```
"""

import asyncio
import contextlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

LONGEST_LINE_BYTES = 64_000_000
HELLO_S = 10.0

Asked = Callable[["Server", Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(eq=False)
class Server:
    """A tool server that has said hello."""

    pid: int
    way: str
    ready: "asyncio.Future[int]"
    """The port it serves at, once it does (0 over stdio)."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class Control:
    """Where the servers of one run call. An async context manager."""

    def __init__(self, tools: list[dict[str, Any]], asked: Asked) -> None:
        """`tools` are told to every server; `asked(server, question)` answers it."""
        self._tools, self._asked = tools, asked
        self.secret = secrets.token_hex(16)
        self.servers: list[Server] = []
        """Those that are connected."""
        self.came: asyncio.Queue[Server] = asyncio.Queue()
        self._open: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """What a server must be told: `host:port:secret`."""
        host, port = self._listening.sockets[0].getsockname()[:2]
        return f"{host}:{port}:{self.secret}"

    async def __aenter__(self) -> Self:
        """Listen."""
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=LONGEST_LINE_BYTES)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Hang up on every server: it ends by itself then."""
        self._listening.close()
        for task in list(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  asyncio runs us in one
        self._open.add(task)
        try:
            await self._talk(reader, writer)
        except (OSError, ValueError, asyncio.CancelledError):
            pass  # whoever speaks something else, or hangs up in mid word, is no server of ours
        finally:
            self._open.discard(task)
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = json.loads(await asyncio.wait_for(reader.readline(), HELLO_S))
        if not hmac.compare_digest(str(hello.get("secret", "")), self.secret):
            return
        server = Server(int(hello["pid"]), str(hello["way"]), asyncio.get_running_loop().create_future())
        self.servers.append(server)
        self.came.put_nowait(server)
        answering: set[asyncio.Task[None]] = set()
        try:
            _say(writer, {"tools": self._tools})
            while line := await reader.readline():
                question = asyncio.create_task(self._answer(server, json.loads(line), writer))
                answering.add(question)
                question.add_done_callback(answering.discard)
        finally:
            self.servers.remove(server)
            server.gone.set()
            server.ready.cancel()
            for question in list(answering):
                question.cancel()
            await asyncio.gather(*answering, return_exceptions=True)

    async def _answer(self, server: Server, question: Mapping[str, Any], writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            _say(writer, {"id": question["id"], **await self._asked(server, question)})
            await writer.drain()


def _say(writer: asyncio.StreamWriter, words: Mapping[str, Any]) -> None:
    writer.write(json.dumps(words).encode() + b"\n")
