"""Links in front of real servers, where they are installed: PostgreSQL with a pool of psycopg, and Redis."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from tests.live.conftest import patiently
from wedgehog.harness.network.ports import free_port, is_listening

HERE = Path(__file__).parent
PASSWORD = "not-to-be-stored"
TURNS = [{"user": f"Question {n}?", "model": [{"text": "An answer. {nonce}"}]} for n in (1, 2, 3)]


def program(name: str) -> str:
    """Where a server's program is; skips the test without it."""
    found = shutil.which(name) or next((str(it) for it in Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), None)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., int]]:
    """Starts a server at a free port, with an empty folder; for root as another user, because PostgreSQL wants that."""
    with tempfile.TemporaryDirectory() as name:
        user = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
        if user:
            shutil.chown(name, **user)
        started: list[subprocess.Popen[bytes]] = []

        def start(*commands: list[str]) -> int:
            port = free_port()
            *before, argv = [[word.format(port=port, folder=name) for word in command] for command in commands]
            for command in before:
                subprocess.run(command, check=True, capture_output=True, cwd=name, **user)  # type: ignore[call-overload]
            with (Path(name) / f"{port}.log").open("wb") as log:
                started.append(subprocess.Popen(argv, stdout=log, stderr=log, cwd=name, **user))  # type: ignore[call-overload]
            assert patiently(lambda: is_listening(port))
            return port

        yield start
        for process in started:
            process.terminate()
            process.wait(30)


@pytest.fixture(scope="module")
def postgres(serve: Callable[..., int]) -> str:
    """Its address, with a password that it does not ask for."""
    for package in ("psycopg", "psycopg_pool"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    init = [program("initdb"), "-D", "{folder}/data", "-U", "wedge", "-A", "trust", "--no-sync"]
    run = [program("postgres"), "-D", "{folder}/data", "-p", "{port}", "-k", "", "-h", "127.0.0.1", "-F"]
    port = serve(init, run)
    return f"postgresql://wedge:{PASSWORD}@127.0.0.1:{port}/postgres?sslmode=disable"


def stories(folder: Path, link: str) -> None:
    """A stall in the middle of a reply, and as many cuts as the pool has connections."""
    stall = [{"link": link, "at": {"turn": 2, "byte": 30}, "do": "stall"}]
    cuts = [{"link": link, "at": {"turn": turn}, "do": "cut"} for turn in (2, 3)]
    for name, faults, more in (("stalls", stall, {"turn_answered": {}}), ("cuts", cuts, {})):
        story = {"name": name, "why": "It is a test.", "turns": TURNS, "faults": faults, "invariants": more}
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(story))


def agents(folder: Path, url: str, *kinds: str) -> list[str]:
    """Specs of the agent whose memory is there."""
    words = []
    for kind in kinds:
        spec = {
            "name": kind or "careful",
            "wire": "openai-chat",
            "links": {"db": {"to": url.rpartition("@")[2].partition("/")[0], "env": "DATABASE_URL"}},
            "http": {
                "start": ["{python}", str(HERE / "remembering.py"), "{port}", *([f"--{kind}"] if kind else [])],
                "url": "/",
                "body": {"text": "{message}"},
                "answer": "json:answer",
                "error": "json:error",
            },
            "env": {"OPENAI_BASE_URL": "{llm_url}/v1", "OPENAI_API_KEY": "{key}", "SESSION": "{session_dir}"},
            "limits": {"turn_s": 5},
            "recover_s": 0,
        }
        (folder / f"{spec['name']}-agent.yaml").write_text(yaml.safe_dump(spec))
        words += ["--agent", f"{spec['name']}-agent.yaml"]
    return words


def events(folder: Path, kind: str) -> list[dict[str, Any]]:
    found = map(json.loads, (folder / "history.jsonl").read_text().splitlines())
    return [event for event in found if event["event"] == kind]


def test_postgres_behind_a_pool(wedgehog: Any, postgres: str, tmp_path: Path):
    """Over Toxiproxy where it is: one agent loses a turn to a stall, one its pool to two cuts, one nothing."""
    stories(tmp_path, "tcp:db")
    mine = agents(tmp_path, postgres, "", "patient", "leak")
    done = wedgehog("run", "stalls.yaml", "cuts.yaml", *mine, "--jobs=3", DATABASE_URL=postgres)
    latest = tmp_path / "runs" / "latest"
    rows = pd.read_csv(latest / "summary.csv", keep_default_na=False).to_dict("records")
    found = {(row["scenario"], row["agent"]): (row["verdict"], row["violated"]) for row in rows}
    says = done.stdout + done.stderr
    assert found["stalls", "careful"] == found["cuts", "careful"] == ("pass", ""), says
    busy = [("inconclusive", "")] if "busy machine" in says else []
    assert found["stalls", "patient"] in [("fail", "turn_deadline"), *busy], says
    assert found["cuts", "leak"] in [("fail", "session_recovers;turn_deadline"), *busy], says
    careful = latest / "stalls" / "careful"
    (fired,) = events(careful, "fault_fired")
    closed = {event["connection"]: event for event in events(careful, "backend_closed")}
    (struck,) = [event for event in closed.values() if event["faults"] == ["stall"]]
    assert (fired["name"], fired["link"], struck["by"]) == ("stall", "tcp:db", "agent")
    assert str(fired["bytes"]) in fired["proof"]
    for path in latest.resolve().rglob("*"):
        assert not path.is_file() or PASSWORD.encode() not in path.read_bytes(), path


def test_redis(wedgehog: Any, serve: Callable[..., int], tmp_path: Path):
    """The example of the page about links, with the server that it is written for."""
    run = [program("redis-server"), "--port", "{port}", "--bind", "127.0.0.1", "--save", "", "--dir", "{folder}"]
    port = serve(run)
    example = shutil.copytree(HERE.parents[2] / "docs" / "examples" / "links", tmp_path / "links")
    for spec in example.glob("*.yaml"):
        spec.write_text(spec.read_text().replace("6379", str(port)))
    mine = [word for name in ("careful", "leaky") for word in ("--agent", f"links/{name}.yaml")]
    done = wedgehog("run", "links/scenarios/memory-cuts-twice.yaml", *mine, "--jobs=2")
    rows = pd.read_csv(tmp_path / "runs" / "latest" / "summary.csv", keep_default_na=False).to_dict("records")
    violated = {row["agent"]: row["violated"] for row in rows}
    assert violated == {"careful": "", "leaky": "session_recovers"}, done.stdout + done.stderr
