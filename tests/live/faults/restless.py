"""A service that may go on by itself: `restless.py BUG URL PORT`.

After a rate limit it asks its model whether something is left to do, and does so again

- `sound`: once, a second after its answer
- `backs-off`: after 1, 2 and 4 seconds
- `restless`: as soon as the reply has come, as nothing ever tells it that all is done (the bug)
"""

import asyncio
import sys
from collections.abc import Sequence

import aiohttp
from aiohttp import web

WAITS_S = {"sound": [1.0], "backs-off": [1.0, 2.0, 4.0], "restless": [0.05] * 1000}
SHELL = {
    "name": "bash",
    "description": "Run a command.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
}
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
LEFT = "Is there anything left to do? Go on, or say that all is done."


class Agent:
    """One conversation."""

    def __init__(self, kind: str, url: str) -> None:
        self.waits_s, self.url, self.said = WAITS_S[kind], f"{url}/v1/messages", []
        self.limited, self.left = False, None

    async def ask(self) -> list[dict]:
        """The blocks of the model's next reply."""
        body = {"model": "claude-sonnet-4-5", "max_tokens": 900, "messages": self.said, "tools": [SHELL]}
        async with aiohttp.ClientSession() as http:
            while True:
                async with http.post(self.url, json=body, headers=HEADERS) as reply:
                    if reply.status != 429:
                        reply.raise_for_status()
                        blocks = (await reply.json())["content"]
                        break
                    self.limited = True
                    await asyncio.sleep(float(reply.headers["retry-after"]))
        self.said.append({"role": "assistant", "content": blocks})
        return blocks

    async def turn(self, text: str) -> str:
        """Ask until the model calls no more tools; its last words."""
        self.said.append({"role": "user", "content": text})
        blocks = await self.ask()
        while calls := [it for it in blocks if it["type"] == "tool_use"]:
            results = [
                {"type": "tool_result", "tool_use_id": it["id"], "content": await run(it["input"]["command"])}
                for it in calls
            ]
            self.said.append({"role": "user", "content": results})
            blocks = await self.ask()
        return "".join(it.get("text", "") for it in blocks)

    async def goes_on(self) -> None:
        """Ask what is left, without its user."""
        for wait_s in self.waits_s:
            await asyncio.sleep(wait_s)
            await self.turn(LEFT)

    async def answer(self, request: web.Request) -> web.Response:
        if self.left is not None:
            self.left.cancel()
        answer = await self.turn((await request.json())["text"])
        self.left = asyncio.create_task(self.goes_on()) if self.limited else None
        return web.json_response({"answer": answer})


async def run(command: str) -> str:
    """What a command prints."""
    process = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()


def main(argv: Sequence[str]) -> None:
    kind, url, port = argv
    app = web.Application()
    app.add_routes([web.post("/message", Agent(kind, url).answer)])
    web.run_app(app, host="127.0.0.1", port=int(port), print=None)


if __name__ == "__main__":
    main(sys.argv[1:])
