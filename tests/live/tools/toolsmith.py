"""An agent whose tool comes from an MCP server over stdio: `toolsmith.py SERVER SESSION_FOLDER MESSAGE`.

It speaks the protocol itself, over one connection for each message: the official client takes a second to import.
"""

import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

from plain_http import post

TOOL_S = 2.0
"""How long a tool may take; its user is told what happened to one that takes longer."""
STARTS_S = 30.0
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "toolsmith", "version": "1"}}


class Server:
    """A started tool server."""

    def __init__(self, command: str) -> None:
        """Start it, and ask for its tools."""
        self._process = subprocess.Popen([command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._count = 0
        self._asked("initialize", HELLO, STARTS_S)
        self._write({"method": "notifications/initialized"})
        self.tools: list[dict[str, Any]] = self._asked("tools/list", {}, STARTS_S)["tools"]

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """What the tool says, or what happened to it."""
        try:
            result = self._asked("tools/call", {"name": name, "arguments": arguments}, TOOL_S)
        except OSError as wrong:
            return f"The tool failed: {wrong}"
        return "".join(part["text"] for part in result["content"])

    def end(self) -> None:
        """Close its input, and wait for it."""
        self._process.stdin.close()  # type: ignore[union-attr]
        try:
            self._process.wait(TOOL_S)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _asked(self, method: str, params: dict[str, Any], within_s: float) -> dict[str, Any]:
        self._count += 1
        self._write({"id": self._count, "method": method, "params": params})
        while (said := json.loads(self._line(within_s))).get("id") != self._count:
            pass
        result: dict[str, Any] = said["result"]
        return result

    def _write(self, message: dict[str, Any]) -> None:
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")  # type: ignore[union-attr]

    def _line(self, within_s: float) -> bytes:
        out, line = self._process.stdout, b""
        assert out is not None
        while not line.endswith(b"\n"):
            if not select.select([out], [], [], within_s)[0]:
                raise TimeoutError("it does not answer")
            if not (data := out.read(65536)):
                raise ConnectionError("it has ended")
            line += data
        return line


def ask(messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """One call of the model."""
    offered = [{"type": "function", "function": {"name": it["name"], "parameters": it["inputSchema"]}} for it in tools]
    body = {"model": "gpt-4.1-mini", "messages": messages, "tools": offered}
    headers = {"authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    reply = post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers, timeout_s=20)
    message: dict[str, Any] = json.loads(reply.read())["choices"][0]["message"]
    return message


def main(command: str, folder: str, text: str) -> None:
    """Answer one message with as many tool rounds as the model wants, and remember it."""
    file = Path(folder) / "conversation.json"
    messages = json.loads(file.read_text()) if file.exists() else []
    messages.append({"role": "user", "content": text})
    server = Server(command)
    while (said := ask(messages, server.tools)).get("tool_calls"):
        messages.append(said)
        for call in said["tool_calls"]:
            result = server.call(call["function"]["name"], json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    server.end()
    file.write_text(json.dumps([*messages, said]))
    print(said["content"])


main(*sys.argv[1:])
