"""The servers that are measured, each started as people start it, as a process of its own."""

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
    """A server: how it is started, with `{port}`, and what its name is in the table."""

    name: str
    command: tuple[str, ...]

    @contextmanager
    def running(self, port: int) -> Iterator[subprocess.Popen[bytes]]:
        """Run it, and end it; how far it is with starting is not waited for."""
        command = [word.format(port=port) for word in self.command]
        # What is installed has been compiled: the first round does that where nobody has.
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
    """CopilotKit's aimock where npm has installed it, else None."""
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
