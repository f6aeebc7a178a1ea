"""The control connection of a tool server: it asks the harness for results, in JSON lines on loopback, with a secret.

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
from typing import Any

from wedgehog.harness.services.json_lines import LineServer, line_of

HELLO_S = 10.0

CallHandler = Callable[["ToolServer", Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(eq=False)
class ToolServer:
    """A connected tool server."""

    pid: int
    way: str
    ready: "asyncio.Future[int]"
    """The port on which it serves, once it is ready (0 over stdio)."""
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class ToolServerChannel(LineServer):
    """Accepts the control connections of one run's tool servers. Its exit ends every server."""

    def __init__(self, tools: list[dict[str, Any]], asked: CallHandler) -> None:
        """`tools` are sent to each server; `asked(server, question)` returns the answer to each question."""
        self._tools, self._asked = tools, asked
        self.secret = secrets.token_hex(16)
        self.servers: list[ToolServer] = []
        """The connected servers."""
        self.came: asyncio.Queue[ToolServer] = asyncio.Queue()
        super().__init__()

    @property
    def secret_address(self) -> str:
        """The value that a server needs to connect: `host:port:secret`."""
        host, port = self.address
        return f"{host}:{port}:{self.secret}"

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = json.loads(await asyncio.wait_for(reader.readline(), HELLO_S))
        if not hmac.compare_digest(str(hello.get("secret", "")), self.secret):
            return
        server = ToolServer(int(hello["pid"]), str(hello["way"]), asyncio.get_running_loop().create_future())
        self.servers.append(server)
        self.came.put_nowait(server)
        answering: set[asyncio.Task[None]] = set()
        try:
            writer.write(line_of({"tools": self._tools}))
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

    async def _answer(self, server: ToolServer, question: Mapping[str, Any], writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            writer.write(line_of({"id": question["id"], **await self._asked(server, question)}))
            await writer.drain()
