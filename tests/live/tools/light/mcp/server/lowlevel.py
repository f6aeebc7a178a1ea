"""The low-level server: answers each request in a task of its own."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from typing import Any

from mcp.types import CallToolRequestParams

Answer = Callable[[Any, Any], Awaitable[Any]]


class Server:
    def __init__(self, name: str, on_list_tools: Answer, on_call_tool: Answer) -> None:
        self._name, self._list_tools, self._call_tool = name, on_list_tools, on_call_tool

    def create_initialization_options(self) -> None:
        """None are needed."""

    async def run(self, incoming: AsyncIterator[bytes], outgoing: Any, options: None) -> None:
        async with asyncio.TaskGroup() as open_requests:
            async for line in incoming:
                said = json.loads(line)
                if "id" in said:
                    open_requests.create_task(self._answer(said, outgoing))

    async def _answer(self, asked: dict[str, Any], outgoing: Any) -> None:
        result = await self._result(asked["method"], asked.get("params", {}))
        await outgoing.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\n")

    async def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            info = {"name": self._name, "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
        if method == "tools/list":
            return asdict(await self._list_tools(None, None))
        assert method == "tools/call", method
        result = await self._call_tool(None, CallToolRequestParams(params["name"], params["arguments"]))
        return {"content": [asdict(part) for part in result.content], "isError": result.is_error}
