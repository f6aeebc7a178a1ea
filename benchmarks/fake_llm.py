"""`wedgehog serve` against aimock, as people start both, measured from outside in one run: `nox -s bench`.

Both are warm before anything counts, and take turns in each round, so that what else the machine does meets both.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import platform
import resource
import socket
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.client import CONNECTIONS, ask, hold
from benchmarks.contestants import EVENTS, Contestant, aimock, ours
from benchmarks.gauge import cpu_ms, machine, memory_kb
from benchmarks.load import Load, choose

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


@dataclass
class Running:
    """A server that runs, and what it used: numbers by what was measured."""

    name: str
    pid: int
    port: int
    used: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in LABELS})


def main() -> None:
    """Measure, print the table, and write it into a document where one is named."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("--into", type=Path, help="a document with the marks between which the table stands")
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
        write(options.into, result)


def start(contestant: Contestant, stack: contextlib.ExitStack) -> Running:
    """Start a server, and see what that took until it listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    process = stack.enter_context(contestant.running(port))
    wait_for(port)
    server = Running(contestant.name, process.pid, port)
    server.used["startup"].append(cpu_ms(process.pid))
    return server


def measure(servers: list[Running], word: str, load: Load, rounds: int) -> None:
    """Warm every server with one kind of request, then let them take turns."""
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
    """Return how many KB each stream takes that has sent its first event and waits for the next."""
    before = memory_kb(server.pid)
    writers = await hold(server.port, HELD)
    used = memory_kb(server.pid) - before
    for writer in writers:
        writer.transport.abort()
    return used / HELD


def table(servers: list[Running]) -> str:
    """Write the medians as Markdown, and where aimock was measured too, ratios to it."""
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
    """Write the median, and the range where there are several."""
    told = f"{statistics.median(ratios):.2f}"
    return f"{told} ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else told


def write(file: Path, result: str) -> None:
    """Put the result between the marks of a document."""
    before, rest = file.read_text().split("<!-- fake_llm -->")
    after = rest.split("<!-- /fake_llm -->")[1]
    file.write_text(f"{before}<!-- fake_llm -->\n{result}<!-- /fake_llm -->{after}")


def wait_for(port: int) -> None:
    """Wait until a server listens.

    Raises:
        SystemExit: it did not within half a minute.
    """
    deadline = time.perf_counter() + PATIENCE_S
    while time.perf_counter() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.005)
    raise SystemExit(f"nothing listens on port {port}")


if __name__ == "__main__":
    main()
