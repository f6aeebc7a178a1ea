"""What the page about tools promises is what happens: its agent and its stories run as they stand."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="the MCP package is not installed")


STORIES = {"http": ("lost-result", "server-dies"), "stdio": ("lost-result", "server-dies", "pipe-is-cut")}
"""What is played in each way to reach a tool."""
ASKED = [("weather", "1.1.1"), ("weather", "2.1.1"), ("weather", "3.1.1")]
"""A call in each turn, and one in the recovery."""
Rows = dict[str, dict[str, Any]]
_PLAYED: dict[str, tuple[Path, Rows]] = {}


@pytest.fixture
def environment(environment: dict[str, str], warm_python: str) -> dict[str, str]:
    """Agents and servers are forked from a process that has imported the MCP package."""
    return environment | {"WEDGEHOG_TEST_PYTHON": warm_python}


def played(wedgehog: Any, docs: Path, story: str, way: str, out: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The story's row of the summary, and its events; all stories of a way are one campaign, and played once."""
    if way not in _PLAYED:
        _PLAYED[way] = (out, campaign(wedgehog, docs / "examples" / "tools", way, out))
    folder, rows = _PLAYED[way]
    lines = (folder / "latest" / rows[story]["run_dir"] / "history.jsonl").read_text().splitlines()
    return rows[story], [json.loads(line) for line in lines]


def campaign(wedgehog: Any, folder: Path, way: str, out: Path) -> Rows:
    """Play all stories of a way."""
    files = [str(folder / "scenarios" / f"{story}.yaml") for story in STORIES[way]]
    words = ("run", *files, "--agent", str(folder / f"{way}.yaml"), "--network", "embedded", "--jobs", "2")
    done = wedgehog(*words, "--out", str(out))
    rows = pd.read_csv(out / "latest" / "summary.csv", keep_default_na=False).to_dict("records")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(row["scenario"] for row in rows) == sorted(STORIES[way])
    return {row["scenario"]: row for row in rows}


def told(events: list[dict[str, Any]], kind: str, *keys: str) -> list[tuple[Any, ...]]:
    return [tuple(event[key] for key in keys) for event in events if event["event"] == kind]


@pytest.mark.parametrize("way", ["http", "stdio"])
def test_a_result_is_lost_and_the_agent_goes_on(wedgehog: Any, docs: Path, tmp_path: Path, way: str):
    """The call that was lost never got done; the next one did, and that of the recovery message."""
    row, events = played(wedgehog, docs, "lost-result", way, tmp_path / "runs")
    assert (row["verdict"], row["answered"], row["faults_fired"]) == ("pass", True, 1)
    assert told(events, "fault_fired", "name", "link") == [("lose_result", "tool:mcp")]
    assert told(events, "tool_asked", "tool", "token") == ASKED
    recovered = [("3.1.1", "started"), ("3.1.1", "done")]
    beacons = [("1.1.1", "started"), ("2.1.1", "started"), ("2.1.1", "done"), *recovered]
    assert told(events, "beacon_seen", "token", "phase") == beacons


@pytest.mark.parametrize("way", ["http", "stdio"])
def test_a_server_dies_and_is_back_in_the_next_turn(wedgehog: Any, docs: Path, tmp_path: Path, way: str):
    """Another process, at the same place."""
    row, events = played(wedgehog, docs, "server-dies", way, tmp_path / "runs")
    assert (row["verdict"], row["answered"], row["faults_fired"]) == ("pass", True, 1)
    ((turn, signal, whom),) = told(events, "agent_killed", "turn", "signal", "whom")
    assert (turn, signal, whom) == (1, "SIGKILL", "server")
    first, second, *_ = told(events, "tool_asked", "server")
    assert first != second
    assert ("1.1.1", "done") not in told(events, "beacon_seen", "token", "phase")


def test_the_pipe_of_a_server_over_stdio_is_cut_in_the_middle_of_a_result(wedgehog: Any, docs: Path, tmp_path: Path):
    """Exactly so many bytes of it arrive; the agent says that its tool failed, and starts the server anew."""
    row, events = played(wedgehog, docs, "pipe-is-cut", "stdio", tmp_path / "runs")
    assert (row["verdict"], row["answered"], row["faults_fired"]) == ("pass", True, 1)
    ((name, link, let_through),) = told(events, "fault_fired", "name", "link", "bytes")
    assert (name, link) == ("cut", "ipc:mcp")
    assert told(events, "tool_asked", "tool", "token") == ASKED
    struck = [out for _, out in told(events, "pipe_closed", "name", "stdout_bytes") if out == let_through]
    assert len(struck) == 1, "the harness and the pipe have counted the same"
    assert {name for (name,) in told(events, "pipe_opened", "name")} == {"mcp"}
    last = [event for event in events if event["event"] == "request_arrived" and event["turn"] == 2][-1]
    lost, kept = last["results"]
    assert [(it["token"], it["printed"]) for it in (lost, kept)] == [("1.1.1", False), ("2.1.1", True)]
