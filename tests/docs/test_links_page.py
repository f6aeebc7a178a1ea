"""What the page about links promises is what happens: its agents and its stories run as they stand."""

import json
import re
import shutil
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest


class Redis(socketserver.ThreadingTCPServer):
    """A server for `RPUSH` and `LRANGE` in Redis's protocol, which keeps its lists in memory."""

    daemon_threads, allow_reuse_address = True, True

    def __init__(self) -> None:
        self.lists: dict[bytes, list[bytes]] = {}
        super().__init__(("127.0.0.1", 0), RedisConnection)


class RedisConnection(socketserver.StreamRequestHandler):
    """One connection: one reply for each command."""

    server: Redis

    def handle(self) -> None:
        while head := self.rfile.readline():
            name, key, *rest = [self.word() for _ in range(int(head[1:]))]
            kept = self.server.lists.setdefault(key, [])
            if name == b"RPUSH":
                kept += rest
                self.wfile.write(b":%d\r\n" % len(kept))
            else:
                assert (name, rest) == (b"LRANGE", [b"0", b"-1"])
                self.wfile.write(b"*%d\r\n" % len(kept) + b"".join(b"$%d\r\n%s\r\n" % (len(it), it) for it in kept))

    def word(self) -> bytes:
        return self.rfile.read(int(self.rfile.readline()[1:]) + 2)[:-2]


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    with Redis() as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def example(docs: Path, redis: Redis, tmp_path: Path) -> Path:
    """The example, with specs that lead to that server, and with more patience, for a busy machine."""
    folder = shutil.copytree(docs / "examples" / "links", tmp_path / "links")
    told = {
        "127.0.0.1:6379": f"127.0.0.1:{redis.server_address[1]}",
        "else 1.0": "else 3.0",
        "turn_s: 2.5": "turn_s: 8",
    }
    for file in (*folder.glob("*.yaml"), folder / "agent.py"):
        for words, instead in told.items():
            file.write_text(file.read_text().replace(words, instead))
    return folder


def test_the_careful_agent_passes_and_the_two_others_fail_where_the_page_says(
    wedgehog: Any, example: Path, tmp_path: Path
):
    """One campaign of both stories; the history has the exact bytes, and no fault is unproved."""
    agents = [word for name in ("careful", "patient", "leaky") for word in ("--agent", str(example / f"{name}.yaml"))]
    out = tmp_path / "runs"
    done = wedgehog("run", str(example / "scenarios"), *agents, "--network=embedded", "--jobs=6", f"--out={out}")
    assert done.returncode == 1, done.stdout + done.stderr
    rows = pd.read_csv(out / "latest" / "summary.csv", keep_default_na=False).to_dict("records")
    assert {(row["scenario"], row["agent"]): row["violated"] for row in rows} == {
        ("memory-stalls", "careful"): "",
        ("memory-stalls", "patient"): "turn_deadline",
        ("memory-stalls", "leaky"): "turn_answered",
        ("memory-cuts-twice", "careful"): "",
        ("memory-cuts-twice", "patient"): "",
        ("memory-cuts-twice", "leaky"): "session_recovers",
    }
    assert {(row["verdict"], row["faults_fired"]) for row in rows if row["agent"] == "careful"} == {
        ("pass", 1),
        ("pass", 2),
    }
    (folder,) = [row["run_dir"] for row in rows if (row["scenario"], row["agent"]) == ("memory-stalls", "careful")]
    lines = (out / "latest" / folder / "history.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    (fired,) = [event for event in events if event["event"] == "fault_fired"]
    used = [event for event in events if event["event"] == "backend_used"]
    assert [(event["turn"], event["connections"]) for event in used] == [(1, 1), (2, 2), (3, 1)]
    assert fired["bytes"] == used[0]["bytes_down"] + 40
    closed = [event for event in events if event["event"] == "backend_closed"]
    assert [(event["by"], event["faults"]) for event in closed] == [("agent", ["stall"]), ("agent", [])]
    page = (out / "latest" / "report.html").read_text()
    assert re.search(r"Use of tcp:memory: 2 connections; turn 1: \d+ bytes up, \d+ down", page)


def test_without_the_server_no_run_starts(wedgehog: Any, example: Path, tmp_path: Path):
    """One line, exit code 2, and no run folder."""
    spec = example / "nowhere.yaml"
    spec.write_text(re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", (example / "careful.yaml").read_text()))
    done = wedgehog("run", str(example / "scenarios"), "--agent", str(spec), f"--out={tmp_path / 'runs'}")
    says = f"wedgehog: {spec}: links: memory: cannot connect to 127.0.0.1:1: Connection refused\n"
    assert (done.returncode, done.stderr) == (2, says) and not (tmp_path / "runs").exists()
