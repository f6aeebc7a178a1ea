"""Requests that an HTTP tool server refuses before its `mcp` application sees them.

```
POST {"method": "tools/call", …}   harness: begin?  ── {}        ▶ the mcp application
POST {"method": "initialize", …}                    ── refusal   ▶ 401, www-authenticate: Bearer …
GET /.well-known/oauth-protected-resource/mcp                    ▶ RFC 9728's metadata, once something was refused
```
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from wedgehog.harness.services.mcp.response_faults import AsgiMessage, Ask, HttpResponses

AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
AsgiApp = Callable[[AsgiMessage, AsgiReceive, AsgiSend], Awaitable[None]]

ENDPOINT = "/mcp"
METADATA = "/.well-known/oauth-protected-resource"


class RefusedCalls:
    """Asks the harness whether a request may begin, and writes the refusal if not."""

    def __init__(self, web: HttpResponses, ask: Ask) -> None:
        """`web` counts the bytes of each connection, `ask` sends a question to the harness."""
        self._web, self._ask = web, ask
        self._has_refused = False

    def around(self, app: AsgiApp) -> AsgiApp:
        """Return `app`, which gets the requests that may begin."""

        async def application(scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
            if scope["type"] != "http":
                return await app(scope, receive, send)
            if scope["path"].startswith(METADATA) and self._has_refused:
                return await _send(send, 200, {}, json.dumps(resource_metadata(_origin(scope))))
            if scope["path"] != ENDPOINT:
                return await app(scope, receive, send)
            read = await _whole(receive) if scope["method"] == "POST" else []
            call = call_in(b"".join(message.get("body", b"") for message in read))
            authorized = bool(_header(scope, b"authorization"))
            refusal = await self._ask("begin", **call, authorized=authorized)
            if "refusal" not in refusal:
                return await app(scope, _again(read, receive), send)
            await self._refuse(refusal, scope, send)

        return application

    async def _refuse(self, refusal: Mapping[str, Any], scope: AsgiMessage, send: AsgiSend) -> None:
        self._has_refused, client = True, tuple(scope["client"])
        headers = {name: value.replace("{origin}", _origin(scope)) for name, value in refusal["headers"].items()}
        await _send(send, refusal["status"], headers, str(refusal["body"]))
        written = self._web.written(client)
        await self._ask("refused", refusal=refusal["refusal"], client=client, written=written)


def call_in(body: bytes) -> dict[str, Any]:
    """The name and arguments of a JSON-RPC `tools/call`; an empty name for everything else.

    >>> call_in(b'{"method": "tools/call", "params": {"name": "weather", "arguments": {"city": "Rome"}}}')
    {'name': 'weather', 'arguments': {'city': 'Rome'}}
    >>> call_in(b'{"method": "tools/list"}')["name"], call_in(b"no JSON")["name"]
    ('', '')
    """
    try:
        match json.loads(body):
            case {"method": "tools/call", "params": {"name": str(name), **more}}:
                arguments = more.get("arguments") or {}
                if isinstance(arguments, dict):
                    return {"name": name, "arguments": arguments}
    except ValueError:
        pass
    return {"name": "", "arguments": {}}


def resource_metadata(origin: str) -> dict[str, Any]:
    """RFC 9728's document, as the MCP authorization specification demands it. The server that it names offers no login.

    >>> resource_metadata("http://127.0.0.1:4711")["authorization_servers"]
    ['http://127.0.0.1:4711']
    """
    return {
        "resource": origin + ENDPOINT,
        "authorization_servers": [origin],
        "bearer_methods_supported": ["header"],
    }


def _origin(scope: AsgiMessage) -> str:
    """The server's address as the client knows it, in front of the link."""
    return f"http://{_header(scope, b'host').decode('latin-1')}"


def _header(scope: AsgiMessage, name: bytes) -> bytes:
    found: bytes = next((value for key, value in scope["headers"] if key.lower() == name), b"")
    return found


async def _send(send: AsgiSend, status: int, more: Mapping[str, str], text: str) -> None:
    body = text.encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), **more}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


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
