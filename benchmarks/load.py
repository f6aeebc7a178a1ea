"""Load from outside: by wrk where it is installed, else by our own client."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from benchmarks.client import CONNECTIONS, ask, body

Load: TypeAlias = Callable[[int, str], int]
"""`load(port, word)` sends requests for about a second, and says how many were answered."""

_AT_ONCE = 4000
_ASKS = """
wrk.method = "POST"
wrk.body = [[{body}]]
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Authorization"] = "Bearer sk-bench"
"""


def choose(folder: Path) -> tuple[str, Load]:
    """Return what makes the load, by name; `folder` takes its files."""
    if shutil.which("wrk") is None:
        return "our own client, because wrk is not installed", _by_ourselves
    return "wrk", lambda port, word: _by_wrk(folder, port, word)


def _by_ourselves(port: int, word: str) -> int:
    asyncio.run(ask(port, word, _AT_ONCE))
    return _AT_ONCE


def _by_wrk(folder: Path, port: int, word: str) -> int:
    script = folder / f"{word}.lua"
    script.write_text(_ASKS.format(body=body(word).decode()))
    options = ("-t1", f"-c{CONNECTIONS}", "-d1s", "-s", str(script))
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    told = subprocess.run(["wrk", *options, url], capture_output=True, text=True, check=True).stdout
    count = re.search(r"(\d+) requests in", told)
    if count is None or "Non-2xx" in told or "Socket errors" in told:
        raise SystemExit(f"wrk {url}, {word}:\n{told}")
    return int(count[1])
