"""A plain MCP server, of the official package alone, that really fails: `plain_mcp.py http|stdio`.

Its one tool does what its argument says. Over HTTP it prints its port first.
"""

import asyncio
import os
import socket
import sys
from typing import Any, ClassVar

import uvicorn
from mcp import types
from mcp.server.auth.middleware.bearer_auth import RequireAuthMiddleware
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from uvicorn.protocols.http.h11_impl import H11Protocol

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


async def on_list_tools(context: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="weather", description="The weather", input_schema=SCHEMA)])


async def on_call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    does, text = (params.arguments or {})["city"], "21 °C"
    if does == "hangs":
        await asyncio.Event().wait()
    if does == "is late":
        await asyncio.sleep(0.5)
    if does == "dies":
        os._exit(9)
    if does == "is huge":
        text += "x" * (5000 - len(text.encode()))
    if does == "fails":
        text = "the tool failed"
    if does in ("is cut", "stalls"):
        text += f" {does}"
    if does == "fails as a server":
        raise MCPError(-32603, "internal error")
    content = [types.TextContent(type="text", text=text)] if does != "has nothing to say" else []
    return types.CallToolResult(content=content, is_error=does == "fails")


class Transports(H11Protocol):
    """The open connections, by who is at their other end."""

    of: ClassVar[dict[Any, Any]] = {}

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.of[self.client] = transport


def disturbed(app: Any) -> Any:
    """A result that says so is cut, or stalls, behind its 30th byte; a call that says so finds no valid token."""

    async def application(scope: Any, receive: Any, send: Any) -> None:
        async def sends(message: Any) -> None:
            body = message.get("body", b"")
            if b" is cut" not in body and b" stalls" not in body:
                return await send(message)
            await send({**message, "body": body[:30], "more_body": True})
            if b" is cut" in body:
                Transports.of[scope["client"]].close()
            await asyncio.Event().wait()

        read = [await receive()] if scope["type"] == "http" and scope["method"] == "POST" else []
        if read and b"is refused" in read[0]["body"]:
            return await RequireAuthMiddleware(app, [])(scope, receive, send)

        async def receives() -> Any:
            return read.pop() if read else await receive()

        await app(scope, receives, sends)

    return application


async def main(way: str) -> None:
    server: Server[Any] = Server("plain", on_list_tools=on_list_tools, on_call_tool=on_call_tool)
    if way == "stdio":
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        return
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(
            disturbed(server.streamable_http_app()), http=Transports, log_level="critical", ws="none"
        )
        await uvicorn.Server(config).serve(sockets=[listening])


asyncio.run(main(sys.argv[1]))
