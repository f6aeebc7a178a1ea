"""Tool calls that an HTTP tool server refuses before its `mcp` application sees them.

```
POST {"method": "tools/call", …}   harness: begin?  ── {}        ▶ the mcp application
                                                    ── refusal   ▶ 401, www-authenticate: Bearer …
every other request                                              ▶ the mcp application
```
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from wedgehog.harness.services.mcp.response_faults import AsgiMessage, Ask, HttpResponses

AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
AsgiApp = Callable[[AsgiMessage, AsgiReceive, AsgiSend], Awaitable[None]]


class RefusedCalls:
    """Asks the harness whether a tool call may begin, and writes the refusal if not."""

    def __init__(self, web: HttpResponses, ask: Ask) -> None:
        """`web` counts the bytes of each connection, `ask` sends a question to the harness."""
        self._web, self._ask = web, ask

    def around(self, app: AsgiApp) -> AsgiApp:
        """Return `app`, which gets the calls that may begin and all other requests."""

        async def application(scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
            if scope["type"] != "http" or scope["method"] != "POST":
                return await app(scope, receive, send)
            read = await _whole(receive)
            call = call_in(b"".join(message.get("body", b"") for message in read))
            refusal = await self._ask("begin", **call) if call else {}
            if "refusal" not in refusal:
                return await app(scope, _again(read, receive), send)
            await self._refuse(refusal, tuple(scope["client"]), send)

        return application

    async def _refuse(self, refusal: Mapping[str, Any], client: tuple[str, int], send: AsgiSend) -> None:
        body = str(refusal["body"]).encode()
        headers = {"content-type": "application/json", "content-length": str(len(body)), **refusal["headers"]}
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": refusal["status"], "headers": pairs})
        await send({"type": "http.response.body", "body": body})
        written = self._web.written(client)
        await self._ask("refused", refusal=refusal["refusal"], client=client, written=written)


def call_in(body: bytes) -> dict[str, Any] | None:
    """The name and arguments of a JSON-RPC `tools/call`; None for everything else.

    >>> call_in(b'{"method": "tools/call", "params": {"name": "weather", "arguments": {"city": "Rome"}}}')
    {'name': 'weather', 'arguments': {'city': 'Rome'}}
    >>> call_in(b'{"method": "tools/list"}'), call_in(b"no JSON")
    (None, None)
    """
    try:
        match json.loads(body):
            case {"method": "tools/call", "params": {"name": str(name), **more}}:
                arguments = more.get("arguments") or {}
                return {"name": name, "arguments": arguments} if isinstance(arguments, dict) else None
    except ValueError:
        pass
    return None


async def _whole(receive: AsgiReceive) -> list[AsgiMessage]:
    """All messages of a request's body."""
    read = [await receive()]
    while read[-1].get("more_body"):
        read.append(await receive())
    return read


def _again(read: list[AsgiMessage], receive: AsgiReceive) -> AsgiReceive:
    """A receiver that gives the messages that were read, then those that follow."""
    left = iter(read)

    async def receive_again() -> AsgiMessage:
        return next(left, None) or await receive()

    return receive_again
