"""The fake provider against bare aiohttp and aimock, all in one run: `nox -s bench`.

Each round starts every server anew and measures it; the table shows the medians of all rounds.
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

from benchmarks.client import ask, hold
from benchmarks.contestants import EVENTS, Contestant, aimock, bare, ours
from benchmarks.gauge import cpu_ms, machine, memory_kb

ROUNDS: Final = 5
WARM: Final = 400
PLAIN: Final = 4000
STREAMS: Final = 2000
HELD: Final = 1000
MANY: Final = 5000
PATIENCE_S: Final = 30
GOALS: Final = {"plain_ms": ("≤ 0.67", 0.67), "stream_ms": ("≤ 0.28", 0.28)}


@dataclass
class Score:
    """What one server used, a number per round."""

    startup_ms: list[float] = field(default_factory=list)
    plain_ms: list[float] = field(default_factory=list)
    stream_ms: list[float] = field(default_factory=list)
    held_kb: list[float] = field(default_factory=list)

    def median(self, name: str) -> float:
        """Return the middle of a measure's rounds."""
        return statistics.median(getattr(self, name))


def main() -> None:
    """Measure, print the table, and write it into a document where one is named."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("--into", type=Path, help="a document with the marks between which the table stands")
    told.add_argument("--node-modules", type=Path, default=Path("node_modules"), help="where npm installed aimock")
    told.add_argument("--rounds", type=int, default=ROUNDS)
    options = told.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * MANY)), hard))
    with tempfile.TemporaryDirectory() as folder:
        other = aimock(options.node_modules.absolute(), Path(folder))
        contestants = [ours(), bare(), *([other] if other else [])]
        scores = {contestant.name: Score() for contestant in contestants}
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            for contestant in contestants:
                measure(contestant, scores[contestant.name])
        held = many(contestants[0])
    result = f"{table(scores)}\n{held}\n"
    print(result)
    if options.into:
        write(options.into, options.rounds, result)


def measure(contestant: Contestant, score: Score) -> None:
    """Start a server, and see what starting, a plain request, a stream and a held stream cost."""
    port = free_port()
    with contestant.running(port) as process:
        wait_for(port)
        score.startup_ms.append(cpu_ms(process.pid))
        for name, word, count in (("plain_ms", "plain", PLAIN), ("stream_ms", "stream", STREAMS)):
            stream = word == "stream"
            reply = asyncio.run(ask(port, word, WARM, stream=stream))
            if stream and reply.count(b"data: ") != EVENTS:
                raise SystemExit(f"{contestant.name} sent {reply.count(b'data: ')} events, not {EVENTS}")
            before = cpu_ms(process.pid)
            asyncio.run(ask(port, word, count, stream=stream))
            getattr(score, name).append((cpu_ms(process.pid) - before) / count)
        score.held_kb.append(asyncio.run(memory_of_held(process.pid, port)))


async def memory_of_held(pid: int, port: int) -> float:
    """Return how many KB each stream takes that has stalled."""
    before = memory_kb(pid)
    writers = await hold(port, HELD)
    used = memory_kb(pid) - before
    for writer in writers:
        writer.transport.abort()
    return used / HELD


def many(contestant: Contestant) -> str:
    """Hold 5,000 stalled streams at once, and say what a request beside them takes."""
    port = free_port()
    with contestant.running(port) as process:
        wait_for(port)
        return asyncio.run(_many(contestant.name, process.pid, port))


async def _many(name: str, pid: int, port: int) -> str:
    before, started = memory_kb(pid), time.perf_counter()
    writers = await hold(port, MANY)
    took = time.perf_counter() - started
    used, cpu = (memory_kb(pid) - before) / MANY, cpu_ms(pid)
    await ask(port, "plain", 400, stream=False)
    beside = (cpu_ms(pid) - cpu) / 400
    for writer in writers:
        writer.transport.abort()
    return (
        f"{MANY:,} stalled streams held at once by {name}: all open after {took:.1f} s, {used:.1f} KB each; "
        f"a plain request beside them takes {beside:.3f} ms of CPU."
    )


def table(scores: dict[str, Score]) -> str:
    """Write the medians as Markdown, and where aimock was measured too, ratios to it."""
    rows = {
        "start-up, ms of CPU": "startup_ms",
        "plain request, ms of CPU": "plain_ms",
        f"unpaced stream of {EVENTS} events, ms of CPU": "stream_ms",
        "held stream, KB": "held_kb",
    }
    other = next((name for name in scores if name.startswith("aimock")), None)
    names = [*scores, *(["ratio to aimock", "goal"] if other else [])]
    lines = [f"| | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    goals = {"startup_ms": "≤ 250 ms", "held_kb": "≤ 15 KB", **{name: text for name, (text, _) in GOALS.items()}}
    for label, name in rows.items():
        medians = [score.median(name) for score in scores.values()]
        cells = [f"{median:.3f}" if median < 1 else f"{median:.1f}" for median in medians]
        if other:
            cells += [f"{medians[0] / scores[other].median(name):.2f}", goals[name]]
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write(file: Path, rounds: int, told: str) -> None:
    """Put the table between the marks of a document, with machine and date."""
    start, end = "<!-- fake_llm -->", "<!-- /fake_llm -->"
    today = datetime.datetime.now(datetime.UTC).date()
    note = f"Measured on {today}: {machine()}; Python {platform.python_version()}, medians of {rounds} rounds.\n"
    text = file.read_text()
    before, rest = text.split(start)
    file.write_text(f"{before}{start}\n{note}\n{told}{end}{rest.split(end)[1]}")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
