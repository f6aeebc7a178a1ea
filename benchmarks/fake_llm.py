"""`wedgehog serve` against aimock, as people start both, measured from outside in one run: `nox -s bench`.

Both are warm before measuring, and take turns in each round, so that other load on the machine affects both.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import json
import os
import platform
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.client import CONNECTIONS, Load, ask, choose, held
from benchmarks.gauge import cpu_ms, machine, memory_kb, write

HERE: Final = Path(__file__).parent
EVENTS: Final = 53
PIECE: Final = 4
WORDS: Final = "abcd" * (EVENTS - 3)
"""Streamed in pieces of four characters, this is 50 events; the role, the reason and `[DONE]` make 53."""
ROUNDS: Final = 9
WARM: Final = 20_000
HELD: Final = 1000
PATIENCE_S: Final = 30
GOALS: Final = {"plain": 0.67, "stream": 0.5}
LABELS: Final = {
    "startup": "start-up, ms of CPU",
    "plain": "plain request, ms of CPU",
    "stream": f"stream of {EVENTS} events, ms of CPU",
    "held": "held stream, KB",
}


@dataclass(frozen=True)
class Contestant:
    """A server: its name in the table, and its command with `{port}`."""

    name: str
    command: tuple[str, ...]

    @contextlib.contextmanager
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


@dataclass
class Running:
    """A running server, and its numbers by measurement."""

    name: str
    pid: int
    port: int
    used: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in LABELS})


def main() -> None:
    """Measure, print the table, and write it into the document of `--into`."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("--into", type=Path, help="a document with marks for the table")
    told.add_argument("--node-modules", type=Path, default=Path("node_modules"), help="where npm installed aimock")
    told.add_argument("--rounds", type=int, default=ROUNDS)
    options = told.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * HELD)), hard))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        by, load = choose(Path(folder))
        other = aimock(options.node_modules.absolute(), Path(folder))
        servers = [start(contestant, stack) for contestant in [ours(), *([other] if other else [])]]
        for server in servers:
            server.used["held"].append(asyncio.run(memory_of_held(server)))
        for word in GOALS:
            measure(servers, word, load, options.rounds)
    today = datetime.datetime.now(datetime.UTC).date()
    note = (
        f"Measured on {today}: {machine()}; Python {platform.python_version()}. "
        f"Load by {by}, {CONNECTIONS} connections; medians of {options.rounds} rounds, "
        "ratios round by round with their range.\n"
    )
    result = f"{note}\n{table(servers)}"
    print(result)
    if options.into:
        write(options.into, "fake_llm", result)


def start(contestant: Contestant, stack: contextlib.ExitStack) -> Running:
    """Start a server, and measure its CPU time until it listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = stack.enter_context(contestant.running(port))
    wait_for(port)
    server = Running(contestant.name, process.pid, port)
    server.used["startup"].append(cpu_ms(process.pid))
    return server


def measure(servers: list[Running], word: str, load: Load, rounds: int) -> None:
    """Warm every server with one kind of request, then measure them in turns."""
    for server in servers:
        events = asyncio.run(ask(server.port, word, 1, 1)).count(b"data: ")
        if events != (EVENTS if word == "stream" else 0):
            raise SystemExit(f"{server.name} sent {events} events to {word!r}")
        answered = 0
        while answered < WARM:
            answered += load(server.port, word)
    for number in range(rounds):
        print(f"{word}: round {number + 1} of {rounds}", file=sys.stderr)
        for server in servers:
            before = cpu_ms(server.pid)
            answered = load(server.port, word)
            server.used[word].append((cpu_ms(server.pid) - before) / answered)


async def memory_of_held(server: Running) -> float:
    """Return the KB of memory per stream that is held after its first event."""
    before = memory_kb(server.pid)
    async with held(server.port, HELD):
        return (memory_kb(server.pid) - before) / HELD


def table(servers: list[Running]) -> str:
    """Return the medians as Markdown, with ratios to aimock if it was measured."""
    mine, *others = servers
    names = [*(server.name for server in servers), *(["ratio to aimock", "goal"] if others else [])]
    lines = [f"| | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    for name, label in LABELS.items():
        medians = [statistics.median(server.used[name]) for server in servers]
        cells = [f"{median:.3f}" if median < 1 else f"{median:.1f}" for median in medians]
        for other in others:
            ratios = [one / two for one, two in zip(mine.used[name], other.used[name], strict=True)]
            cells += [spread(ratios), f"≤ {GOALS[name]}" if name in GOALS else ""]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def spread(ratios: list[float]) -> str:
    """Return the median, with the range of several ratios."""
    told = f"{statistics.median(ratios):.2f}"
    return f"{told} ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else told


def wait_for(port: int) -> None:
    """Wait until a server listens; raise SystemExit after half a minute."""
    deadline = time.perf_counter() + PATIENCE_S
    while time.perf_counter() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.005)
    raise SystemExit(f"nothing listens on port {port}")


if __name__ == "__main__":
    main()
