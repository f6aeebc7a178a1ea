"""The measured servers, each started as users start it, in its own process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
EVENTS: Final = 53
PIECE: Final = 4
WORDS: Final = "abcd" * (EVENTS - 3)
"""Streamed in pieces of four characters, this is 50 events; the role, the reason and `[DONE]` make 53."""


@dataclass(frozen=True)
class Contestant:
    """A server: its name in the table, and its command with `{port}`."""

    name: str
    command: tuple[str, ...]

    @contextmanager
    def running(self, port: int) -> Iterator[subprocess.Popen[bytes]]:
        """Run the server, without waiting until it listens."""
        command = [word.format(port=port) for word in self.command]
        # Installed packages are compiled to bytecode; let the first start do that here.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        silent = subprocess.DEVNULL
        process = subprocess.Popen(command, stdout=silent, stderr=silent, cwd=HERE.parent, env=environment)
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def ours() -> Contestant:
    """The installed command, with a script of 13 lines."""
    command = Path(sys.executable).with_name("wedgehog")
    return Contestant("wedgehog", (str(command), "serve", "--script", str(HERE / "script.yaml"), "--port", "{port}"))


def aimock(node_modules: Path, folder: Path) -> Contestant | None:
    """CopilotKit's aimock if npm has installed it, else None."""
    entry = node_modules / "@copilotkit" / "aimock" / "dist" / "cli.js"
    node = shutil.which("node")
    if node is None or not entry.exists():
        return None
    fixtures = [
        {
            "match": {"userMessage": "hold"},
            "response": {"content": WORDS},
            "streamingProfile": {"ttft": 0, "tps": 0.002},
        },
        {"match": {"userMessage": "stream"}, "response": {"content": WORDS}, "chunkSize": PIECE},
        {"match": {"userMessage": "plain"}, "response": {"content": "Hello there, how are you?"}},
    ]
    file = folder / "fixtures.json"
    file.write_text(json.dumps({"fixtures": fixtures}))
    words = ("-p", "{port}", "-f", str(file), "--log-level", "silent", "--chunk-size", str(PIECE))
    return Contestant("aimock 1.43", (node, str(entry), *words))
