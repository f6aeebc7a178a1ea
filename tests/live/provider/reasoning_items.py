"""A small agent on OpenAI's Responses API: `reasoning_items.py REMOVES URL SESSION MESSAGE`.

It stores each item as it came. A call whose result is missing gets one when the session is loaded (`nothing` for
REMOVES), or is removed with the thought before it (`both`). With the bug (`call`) the thought stays alone.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import aiohttp

Items = list[dict[str, Any]]
COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
SHELL = {"type": "function", "name": "shell", "description": "Runs a command.", "parameters": COMMAND}
ROUNDS = 10


def repaired(items: Items, removes: str) -> Items:
    done = {it["call_id"] for it in items if it.get("type") == "function_call_output"}
    left = [it for it in items if it.get("type") == "function_call" and it["call_id"] not in done]
    if removes == "nothing":
        lost = {"type": "function_call_output", "output": "[interrupted]"}
        return items + [{**lost, "call_id": it["call_id"]} for it in left]
    thoughts = [items[items.index(it) - 1] for it in left] if removes == "both" else []
    return [it for it in items if it not in left and not (it in thoughts and it["type"] == "reasoning")]


async def ask(http: aiohttp.ClientSession, url: str, items: Items) -> Items:
    """The items of one reply. Errors: ValueError if it is refused."""
    body = {"model": "gpt-5", "input": items, "tools": [SHELL], "store": False}
    body["include"] = ["reasoning.encrypted_content"]
    async with http.post(f"{url}/v1/responses", json=body, headers={"authorization": "Bearer k"}) as reply:
        said = json.loads(await reply.read())
        if reply.status != 200:
            raise ValueError(said["error"]["message"])
        output: Items = said["output"]
        return output


async def run(command: str) -> str:
    program = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE)
    printed, _ = await program.communicate()
    return printed.decode()


async def main(argv: Sequence[str]) -> int:
    """Play one message: its answer on stdout, or an error on stderr."""
    removes, url, folder, asked = argv
    path = Path(folder) / "items.json"
    items = repaired(json.loads(path.read_text()), removes) if path.exists() else []
    items.append({"role": "user", "content": asked})
    async with aiohttp.ClientSession() as http:
        for _ in range(ROUNDS):
            try:
                said = await ask(http, url, items)
            except (aiohttp.ClientError, OSError, ValueError) as wrong:
                print(f"Error: {wrong!r}", file=sys.stderr)
                return 1
            items += said
            path.write_text(json.dumps(items))
            calls = [it for it in said if it["type"] == "function_call"]
            for call in calls:
                output = await run(json.loads(call["arguments"])["command"])
                items.append({"type": "function_call_output", "call_id": call["call_id"], "output": output})
            if not calls:
                print(said[-1]["content"][0]["text"])
                return 0
    print(f"Error: stopped after {ROUNDS} rounds", file=sys.stderr)
    return 1


simulate = main

if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
