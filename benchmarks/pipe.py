"""A pipe through `wedgehog-pipe` compared with a bare pipe: `nox -s bench`.

Each round starts a command, bare and behind `wedgehog-pipe` on either network, and sends it messages, each answered
before the next, and then a long stream. Every byte that comes back is compared.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import hashlib
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.gauge import machine, write
from wedgehog.harness.network.choose import choose_network
from wedgehog.harness.stdio_proxy.launch import ARGV
from wedgehog.harness.stdio_proxy.session import StdioServer, StdioSession

WAYS: Final = ("bare", "embedded", "toxiproxy")
ECHO: Final = "import os\nwhile data := os.read(0, 65536):\n    while data: data = data[os.write(1, data):]\n"
STARTS: Final = 20
CHUNK: Final = 1 << 16


class Silent:
    """Ignores pipes."""

    async def opened(self, pipe: StdioSession) -> None:
        """Do nothing."""

    async def closed(self, pipe: StdioSession) -> None:
        """Do nothing."""

    def trouble(self, what: str) -> None:
        """Stop the benchmark."""
        raise SystemExit(what)


def main() -> None:
    """Measure, print the table, and write it into the document of `--into`."""
    told = argparse.ArgumentParser(description=__doc__)
    told.add_argument("--rounds", type=int, default=5)
    told.add_argument("--messages", type=int, default=100_000, help="in all, over the rounds")
    told.add_argument("--bytes", type=int, default=10**9, help="in all, over the rounds")
    told.add_argument("--into", type=Path, help="a document with marks for the table")
    told.add_argument("--serve", choices=WAYS[1:], help=argparse.SUPPRESS)
    options = told.parse_args()
    if options.serve:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(serve(options.serve))
        return
    with contextlib.ExitStack() as stack:
        harnesses = {way: stack.enter_context(harness(way)) for way in WAYS}
        scores: dict[str, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
        for number in range(options.rounds):
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
            for way, env in harnesses.items():
                front = () if way == "bare" else (*ARGV, "--")
                messages, size = options.messages // options.rounds, options.bytes // options.rounds
                scores[way].append((starts(front, env), asks(front, env, messages), streams(front, env, size)))
    result = table(scores, options.rounds, options.messages, options.bytes)
    print(result)
    if options.into:
        write(options.into, "pipe", f"{result}\n")


async def serve(network: str) -> None:
    """Serve pipes until stdin ends; print the address."""
    async with choose_network(network, print) as net, StdioServer(net, lambda _: False, Silent()) as server:  # type: ignore[arg-type]
        print(server.address, flush=True)
        await asyncio.to_thread(sys.stdin.read)


@contextlib.contextmanager
def harness(way: str) -> Iterator[dict[str, str]]:
    """The environment of commands for one way; the harness is another process."""
    if way == "bare":
        yield dict(os.environ)
        return
    argv = [sys.executable, "-m", "benchmarks.pipe", "--serve", way]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout  # noqa: S101  they are pipes
        yield {**os.environ, "WEDGEHOG_PIPE": process.stdout.readline().strip()}
        process.stdin.close()


def starts(front: tuple[str, ...], env: dict[str, str]) -> float:
    """Milliseconds from start to end of a command that does nothing, as a median."""
    taken = []
    for _ in range(STARTS):
        begun = time.perf_counter()
        subprocess.run([*front, "true"], env=env, check=True, stdin=subprocess.DEVNULL)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken) * 1000


def echo(front: tuple[str, ...], env: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a command that echoes its input."""
    argv = [*front, sys.executable, "-S", "-E", "-c", ECHO]
    return subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)


def asks(front: tuple[str, ...], env: dict[str, str], count: int) -> float:
    """Microseconds from a message to its answer, the median of `count`."""
    taken = []
    with echo(front, env) as process:
        assert process.stdin and process.stdout  # noqa: S101  they are pipes
        to, back = process.stdin.fileno(), process.stdout.fileno()
        for number in range(count):
            message = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call"}' % number * (1 + number % 7) + b"\n"
            begun = time.perf_counter()
            os.write(to, message)
            got = os.read(back, CHUNK)
            while len(got) < len(message):
                got += os.read(back, CHUNK)
            taken.append(time.perf_counter() - begun)
            if got != message:
                raise SystemExit(f"message {number} came back as {got!r}")
        process.stdin.close()
        if process.stdout.read() or process.wait():
            raise SystemExit("more came back than was sent, or it did not end well")
    return statistics.median(taken) * 1e6


def streams(front: tuple[str, ...], env: dict[str, str], size: int) -> float:
    """Megabytes a second there and back, for one stream of `size` bytes."""
    block = os.urandom(1 << 20)
    sent, got = hashlib.sha256(), hashlib.sha256()
    with echo(front, env) as process:
        assert process.stdin and process.stdout  # noqa: S101  they are pipes
        begun = time.perf_counter()
        writer = threading.Thread(target=feed, args=(process.stdin.fileno(), block, size))
        writer.start()
        came = 0
        while came < size and (data := os.read(process.stdout.fileno(), CHUNK)):
            got.update(data)
            came += len(data)
        taken = time.perf_counter() - begun
        writer.join()
        process.stdin.close()
        rest = process.stdout.read()
    for at in range(0, size, len(block)):
        sent.update(block[: size - at])
    if rest or came != size or sent.digest() != got.digest() or process.returncode:
        raise SystemExit(f"{size} bytes went in, {came + len(rest)} came back, and they are not the same")
    return size / taken / 1e6


def feed(to: int, block: bytes, size: int) -> None:
    """Write `size` bytes."""
    for at in range(0, size, len(block)):
        data = memoryview(block)[: size - at]
        while data:
            data = data[os.write(to, data) :]


def table(scores: dict[str, list[tuple[float, float, float]]], rounds: int, messages: int, size: int) -> str:
    """The medians, and the machine."""
    names = {
        "bare": "bare pipe",
        "embedded": "`wedgehog-pipe`, embedded relay",
        "toxiproxy": "`wedgehog-pipe`, Toxiproxy",
    }
    rows = ["| | start to end of `true` | a message and its answer | throughput |", "|---|---|---|---|"]
    for way, found in scores.items():
        start, ask, stream = (statistics.median(column) for column in zip(*found, strict=True))
        rows.append(f"| {names[way]} | {start:.1f} ms | {ask:.0f} µs | {stream:.0f} MB/s |")
    day, python = datetime.datetime.now(tz=datetime.UTC).date(), platform.python_version()
    said = f"Medians of {rounds} rounds; each way {messages:,} messages and {size:,} bytes in all, every byte compared."
    return "\n".join([*rows, "", f"{said} {machine()}; {platform.system()}, Python {python}; {day}."])


if __name__ == "__main__":
    main()
