"""A small agent whose tools come from an MCP server: by address, or by the command that starts it.

python agent.py http://127.0.0.1:4711/mcp SESSION_FOLDER MESSAGE
python agent.py /path/of/a/server          SESSION_FOLDER MESSAGE
"""

import asyncio
import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

TOOL_S = 2.0
"""How long a tool may take; the user reads what happened to one that takes longer."""


def ask(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """One call of the model."""
    body = {"model": "gpt-4.1-mini", "messages": messages, **({"tools": tools} if tools else {})}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"},
    )
    with urllib.request.urlopen(request, timeout=20) as reply:
        message: dict[str, Any] = json.load(reply)["choices"][0]["message"]
    return message


class Tools:
    """The tools of one MCP server. Each round connects anew, so that a server that was restarted is no trouble."""

    def __init__(self, server: str) -> None:
        """`server` is an address or a command."""
        self._server = server if server.startswith("http") else StdioServerParameters(command=server)

    async def listed(self) -> list[dict[str, Any]]:
        """As the model gets them; none if the server does not answer."""
        try:
            async with asyncio.timeout(10), Client(self._server) as client:
                found = (await client.list_tools()).tools
        except Exception:  # whatever became of the server, the user gets an answer without it
            return []
        return [
            {"type": "function", "function": {"name": tool.name, "parameters": tool.input_schema}} for tool in found
        ]

    async def result(self, call: dict[str, Any]) -> str:
        """What the tool says, or what happened to it."""
        name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
        try:
            async with Client(self._server) as client:
                async with asyncio.timeout(TOOL_S):
                    result = await client.call_tool(name, arguments)
                return "".join(getattr(part, "text", "") for part in result.content)[:4000]
        except Exception as wrong:  # whatever became of the server, every call gets a result
            return f"The tool failed: {type(wrong).__name__}"


async def main(server: str, folder: str, message: str) -> None:
    """Answer one message with as many tool rounds as the model wants, and remember it."""
    file, tools = Path(folder) / "conversation.json", Tools(server)
    messages = json.loads(file.read_text()) if file.exists() else []
    messages.append({"role": "user", "content": message})
    listed = await tools.listed()
    while True:
        said = ask(messages, listed)
        messages.append(said)
        if not said.get("tool_calls"):
            break
        for call in said["tool_calls"]:
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": await tools.result(call)})
    file.write_text(json.dumps(messages))
    print(said["content"])


asyncio.run(main(*sys.argv[1:]))
