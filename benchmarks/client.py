"""Load from outside: by wrk if it is installed, else by our own client, with raw bytes over open connections."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias, cast

PATIENCE_S = 60
CONNECTIONS = 32
LAST_CHUNK = b"\r\n0\r\n\r\n"
Load: TypeAlias = Callable[[int, str], int]
"""`load(port, word)` sends requests for about a second, and returns how many were answered."""

_COUNT = 4000
_WRK = """
wrk.method = "POST"
wrk.body = [[{body}]]
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer sk-bench"
"""


def request(word: str) -> bytes:
    """Write a request for a chat completion whose last message is `word`; all but "plain" ask for a stream."""
    data = body(word)
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer sk-bench\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    return head.encode() + data


def body(word: str) -> bytes:
    """Write the JSON of that request."""
    messages = [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": word}]
    return json.dumps({"model": "gpt-4o", "messages": messages, "stream": word != "plain"}).encode()


class Connection(asyncio.Protocol):
    """Sends one request `times` times, and keeps the last reply."""

    _transport: asyncio.Transport

    def __init__(self, asked: bytes, times: int) -> None:
        """Send `times` requests, one after the other."""
        self.done = asyncio.get_running_loop().create_future()
        self.last = b""
        self._asked, self._left = asked, times
        self._got = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._asked)

    def data_received(self, data: bytes) -> None:
        """Send the next request when a reply is complete."""
        self._got += data
        if not self._is_whole():
            return
        self.last = bytes(self._got)
        self._got.clear()
        self._left -= 1
        if self._left:
            self._transport.write(self._asked)
        else:
            self._transport.close()
            self.done.set_result(self.last)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail if the end came too early."""
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError(f"closed after {bytes(self._got[:300])!r}"))

    def _is_whole(self) -> bool:
        head = self._got.find(b"\r\n\r\n")
        if head < 0:
            return False
        if b"chunked" in self._got[:head].lower():
            return self._got.endswith(LAST_CHUNK)
        length = self._got[:head].lower().split(b"content-length: ")[1].split(b"\r")[0]
        return len(self._got) >= head + 4 + int(length)


async def ask(port: int, word: str, count: int, connections: int = CONNECTIONS) -> bytes:
    """Send `count` requests over a few connections; return the last reply, head and all."""
    loop = asyncio.get_running_loop()
    asked, times = request(word), count // connections
    opened = [
        await loop.create_connection(lambda: Connection(asked, times), "127.0.0.1", port) for _ in range(connections)
    ]
    async with asyncio.timeout(PATIENCE_S):
        replies = await asyncio.gather(*(protocol.done for _, protocol in opened))
    return replies[0]


async def hold(port: int, count: int) -> list[asyncio.StreamWriter]:
    """Open `count` streams that stall after their first event, and wait for each first event."""
    asked = request("hold")
    held: list[asyncio.StreamWriter] = []
    for start in range(0, count, 200):
        held += await asyncio.gather(*(_held(port, asked) for _ in range(min(200, count - start))))
    return held


async def _held(port: int, asked: bytes) -> asyncio.StreamWriter:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(asked)
    async with asyncio.timeout(PATIENCE_S):
        await reader.readuntil(b"data: ")
    return writer


def choose(folder: Path) -> tuple[str, Load]:
    """Return a load with its name; `folder` takes its files."""
    if shutil.which("wrk") is None:
        return "our own client, because wrk is not installed", _by_client
    return "wrk", lambda port, word: _by_wrk(folder, port, word)


def _by_client(port: int, word: str) -> int:
    asyncio.run(ask(port, word, _COUNT))
    return _COUNT


def _by_wrk(folder: Path, port: int, word: str) -> int:
    script = folder / f"{word}.lua"
    script.write_text(_WRK.format(body=body(word).decode()))
    options = ("-t1", f"-c{CONNECTIONS}", "-d1s", "-s", str(script))
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    told = subprocess.run(["wrk", *options, url], capture_output=True, text=True, check=True).stdout
    count = re.search(r"(\d+) requests in", told)
    if count is None or "Non-2xx" in told or "Socket errors" in told:
        raise SystemExit(f"wrk {url}, {word}:\n{told}")
    return int(count[1])
