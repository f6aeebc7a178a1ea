"""The tool server, a process of the `mcp` package: `python -m wedgehog.harness.services.mcp.server http|stdio`."""

import asyncio
import itertools
import json
import os
import socket
import sys
from typing import Any

from wedgehog.harness.network.ports import HOST
from wedgehog.harness.services.filler import padded
from wedgehog.harness.services.json_lines import LONGEST_LINE_BYTES, line_of
from wedgehog.harness.services.mcp.refused_calls import RefusedCalls
from wedgehog.harness.services.mcp.response_faults import HttpResponses, ResponseFaults, StdioResponses

ADDRESS_VARIABLE = "WEDGEHOG_TOOLS"
KEEP_ALIVE_S = 86_400
INTERNAL_ERROR = -32603
"""JSON-RPC's code for a failure of the server itself."""
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
"""One grey pixel, a PNG."""


class HarnessClient:
    """The client of the control connection; when the harness closes it, this process exits."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._numbers = itertools.count(1)

    @classmethod
    async def connect(cls, way: str) -> tuple["HarnessClient", list[dict[str, Any]]]:
        """Connect to the harness; return the client and the tools to offer."""
        host, port, secret = os.environ.pop(ADDRESS_VARIABLE).rsplit(":", 2)
        reader, writer = await asyncio.open_connection(host, int(port), limit=LONGEST_LINE_BYTES)
        harness = cls(reader, writer)
        writer.write(line_of({"secret": secret, "pid": os.getpid(), "way": way}))
        hello = json.loads(await reader.readline())
        harness._listening = asyncio.create_task(harness._listen())  # type: ignore[attr-defined]
        return harness, hello["tools"]

    async def ask(self, do: str, **more: Any) -> dict[str, Any]:
        """Send one question and wait for its answer, without a timeout."""
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self._writer.write(line_of({"id": number, "do": do, **more}))
        try:
            return await self._waiting[number]
        finally:
            del self._waiting[number]

    async def _listen(self) -> None:
        try:
            while line := await self._reader.readline():
                said = json.loads(line)
                waiting = self._waiting.get(said["id"])
                if waiting is not None and not waiting.done():  # the caller may be cancelled
                    waiting.set_result(said)
        finally:
            os._exit(0)  # the run is over; do not wait for open requests


def _server(harness: HarnessClient, tools: list[dict[str, Any]], faults: ResponseFaults) -> Any:
    from mcp import types
    from mcp.server.lowlevel import Server

    listed = [types.Tool.model_validate(tool) for tool in tools]

    async def on_list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def on_call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if all(tool.name != params.name for tool in listed):
            text = f"no tool is called {params.name!r}"
            return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
        call = await harness.ask("call", name=params.name, arguments=params.arguments or {})
        faults.expect(call["token"], call["copies"], call["broken"])
        text, token = padded(call["text"], call["bytes"] - len(call["token"]) - 1), call["token"]
        text = f"{text}\n{token}" if token else text  # the token identifies the result
        if call["by_protocol"]:
            from mcp.shared.exceptions import MCPError

            raise MCPError(INTERNAL_ERROR, text)
        if call["empty"]:  # `_meta` is no content, and no client gives it to the model
            return types.CallToolResult(content=[], _meta={"wedgehog": token})
        content: list[Any] = [types.TextContent(type="text", text=text)]
        if call["image"]:
            content.append(types.ImageContent(type="image", data=PICTURE, mime_type="image/png"))
        return types.CallToolResult(content=content, is_error=call["is_error"])

    return Server("wedgehog-tools", on_list_tools=on_list_tools, on_call_tool=on_call_tool)


async def serve_http() -> None:
    """Serve MCP over streamable HTTP on a free loopback port, and report the port to the harness."""
    import uvicorn

    harness, tools = await HarnessClient.connect("http")
    faults = ResponseFaults(harness.ask)
    web = HttpResponses(faults)
    refused = RefusedCalls(web, harness.ask)
    app = web.around(refused.around(_server(harness, tools, faults).streamable_http_app()))
    # IPPROTO_TCP is explicit: asyncio sets TCP_NODELAY only on sockets that name it.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind((HOST, 0))

        class Ready(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                await harness.ask("ready", port=listening.getsockname()[1])

        config = uvicorn.Config(app, http=web.protocol(), ws="none", log_level="warning", lifespan="on")
        # Do not close idle connections: with a link in between, a request may be in flight.
        config.timeout_keep_alive = KEEP_ALIVE_S
        await Ready(config).serve(sockets=[listening])


async def serve_stdio() -> None:
    """Serve MCP over stdin and stdout until the end of the input."""
    from mcp.server.stdio import stdio_server

    harness, tools = await HarnessClient.connect("stdio")
    faults = ResponseFaults(harness.ask)
    server = _server(harness, tools, faults)
    await harness.ask("ready", port=0)
    async with stdio_server(stdout=StdioResponses(faults, sys.stdout.buffer)) as (incoming, outgoing):  # type: ignore[arg-type]
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(serve_http() if sys.argv[1] == "http" else serve_stdio())
