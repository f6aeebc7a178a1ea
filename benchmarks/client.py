"""Load from outside, over open connections: by wrk if it is installed, else by aiohttp."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import aiohttp

PATIENCE_S = 60
CONNECTIONS = 32
Load: TypeAlias = Callable[[int, str], int]
"""`load(port, word)` sends requests for about a second, and returns how many were answered."""

_COUNT = 4000
_WRK = """
wrk.method = "POST"
wrk.body = [[{body}]]
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer sk-bench"
"""


def url(port: int) -> str:
    """The address that is asked."""
    return f"http://127.0.0.1:{port}/v1/chat/completions"


def body(word: str) -> str:
    """A request for a chat completion whose last message is `word`; all but "plain" ask for a stream."""
    messages = [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": word}]
    return json.dumps({"model": "gpt-4o", "messages": messages, "stream": word != "plain"})


def _client() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        headers={"Authorization": "Bearer sk-bench", "Content-Type": "application/json"},
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=PATIENCE_S),
        raise_for_status=True,
    )


async def ask(port: int, word: str, count: int, connections: int = CONNECTIONS) -> bytes:
    """Send `count` requests over a few connections; return the body of the last reply."""
    data = body(word)

    async def in_turn(http: aiohttp.ClientSession) -> bytes:
        for _ in range(count // connections):
            async with http.post(url(port), data=data) as reply:
                last = await reply.read()
        return last

    async with _client() as http:
        replies = await asyncio.gather(*(in_turn(http) for _ in range(connections)))
    return replies[0]


@asynccontextmanager
async def held(port: int, count: int) -> AsyncIterator[None]:
    """`count` open streams that stall after their first event, which has arrived."""

    async def first_event(http: aiohttp.ClientSession) -> aiohttp.ClientResponse:
        reply = await http.post(url(port), data=body("hold"))
        await reply.content.readuntil(b"data: ")
        return reply

    replies: list[aiohttp.ClientResponse] = []  # a reply that is dropped closes its connection
    async with _client() as http:
        for start in range(0, count, 200):
            replies += await asyncio.gather(*(first_event(http) for _ in range(min(200, count - start))))
        yield


def choose(folder: Path) -> tuple[str, Load]:
    """Return a load with its name; `folder` takes its files."""
    if shutil.which("wrk") is None:
        return "aiohttp, because wrk is not installed", _by_client
    return "wrk", lambda port, word: _by_wrk(folder, port, word)


def _by_client(port: int, word: str) -> int:
    asyncio.run(ask(port, word, _COUNT))
    return _COUNT


def _by_wrk(folder: Path, port: int, word: str) -> int:
    script = folder / f"{word}.lua"
    script.write_text(_WRK.format(body=body(word)))
    options = ("-t1", f"-c{CONNECTIONS}", "-d1s", "-s", str(script))
    told = subprocess.run(["wrk", *options, url(port)], capture_output=True, text=True, check=True).stdout
    count = re.search(r"(\d+) requests in", told)
    if count is None or "Non-2xx" in told or "Socket errors" in told:
        raise SystemExit(f"wrk {url(port)}, {word}:\n{told}")
    return int(count[1])
